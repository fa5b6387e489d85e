// SPDX-License-Identifier: Apache-2.0
// Reports streams and memory of one device that are used on another. Here all devices are this
// machine; on hardware a stream belongs to its context, and an operator reaches only the memory of
// its device.
#include "core/check/state.h"
#include "core/runtime/device.h"

namespace openaclnn::check {
namespace {

int32_t device_of(const Stream& stream, int32_t otherwise) {
  const PinnedContext owner(contexts(), stream.owner());
  return owner ? owner->device : otherwise;
}

// Returns the live allocation of device memory that contains the address.
const Block* memory_at(const void* address) {
  const Block* own = is_device_address(address) ? block_at(address) : nullptr;
  const bool inside =
      own != nullptr && own->live && reinterpret_cast<uintptr_t>(address) < own->reserved_end();
  return inside && own->device != kAnyDevice ? own : nullptr;
}

void report_memory(const char* op, const char* name, const Block& own, const void* address,
                   const Stream& stream, int32_t device) {
  Report report("wrong_device");
  report.what.add(op).add(" works on ").add(name).add(" at ").pointer(address);
  report.what.add(", memory of device ").number(static_cast<uint64_t>(own.device)).add(", on ");
  add_stream(report.what, &stream);
  report.what.add(" of device ").number(static_cast<uint64_t>(device)).add(".");
  report.at("here", op, stack_here());
  report.at("memory made by", own.call, own.made);
  report.advice =
      "allocate memory while the device is current that works on it, or copy it to memory of that "
      "device with aclrtMemcpy first.";
  emit(report);
}

}  // namespace

bool check_stream_device(const char* call, const Stream& stream) {
  const PinnedContext current = current_context();
  if (!current) return true;
  const int32_t device = device_of(stream, current->device);
  if (device == current->device) return true;
  Report report("wrong_device");
  report.what.add(call).add(" puts work on ");
  add_stream(report.what, &stream);
  report.what.add(" of device ").number(static_cast<uint64_t>(device)).add(" while device ");
  report.what.number(static_cast<uint64_t>(current->device))
      .add(" is current: on a device that is ");
  report.what.add("refused with 107003, as the stream is not of the current context.");
  report.at("here", call, stack_here());
  State& state = State::get();
  {
    std::lock_guard lock(state.mutex);
    if (const Object* made = state.ledger.find(&stream)) {
      report.at("stream made by", made->call, made->made);
    }
  }
  report.advice =
      "call aclrtSetDevice with the device of the stream before work is put on it, or take a "
      "stream "
      "that was made while this device was current.";
  emit(report);
  return false;
}

void check_launch_device(const char* op, const aclOpExecutor& executor, const void* workspace,
                         uint64_t workspace_size, const Stream& stream) {
  if (!check_stream_device(op, stream)) return;  // its memory may be the stream's
  bool reported = false;
  const auto check = [&](const char* name, const void* address) {
    const Block* own = memory_at(address);
    if (reported || own == nullptr) return;
    const int32_t device = device_of(stream, own->device);
    if (device == own->device) return;
    report_memory(op, name, *own, address, stream, device);
    reported = true;
  };
  executor.for_each_operand(
      [&](const Executor::Operand& operand) { check(operand.name, operand.data + operand.low); });
  if (workspace_size > 0) check("workspace", workspace);
}

}  // namespace openaclnn::check
