// SPDX-License-Identifier: Apache-2.0
// Reports copies and fills of the wrong kind or size.
#include "acl/acl_rt.h"
#include "core/check/state.h"
#include "core/runtime/device.h"
#include "core/memory/memory.h"

namespace openaclnn::check {
namespace {

constexpr const char* kKinds[] = {"ACL_MEMCPY_HOST_TO_HOST",
                                  "ACL_MEMCPY_HOST_TO_DEVICE",
                                  "ACL_MEMCPY_DEVICE_TO_HOST",
                                  "ACL_MEMCPY_DEVICE_TO_DEVICE",
                                  "ACL_MEMCPY_DEFAULT",
                                  "ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE",
                                  "ACL_MEMCPY_INNER_DEVICE_TO_DEVICE",
                                  "ACL_MEMCPY_INTER_DEVICE_TO_DEVICE"};
constexpr int kKindCount = sizeof kKinds / sizeof *kKinds;

struct Ends {
  bool src, dst;  // on the device
};

Ends ends_of(int kind) {
  switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST: return {false, false};
    case ACL_MEMCPY_HOST_TO_DEVICE:
    case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE: return {false, true};
    case ACL_MEMCPY_DEVICE_TO_HOST: return {true, false};
    default: return {true, true};
  }
}

const char* name_of(bool on_device) { return on_device ? "device" : "host"; }

void check_kind(const char* call, const void* dst, const void* src, int kind) {
  if (kind < 0 || kind >= kKindCount || kind == ACL_MEMCPY_DEFAULT) return;
  if (is_shared(src) || is_shared(dst)) return;  // either kind fits
  const Ends found = {is_device_address(src), is_device_address(dst)};
  const Ends said = ends_of(kind);
  if (found.src == said.src && found.dst == said.dst) return;
  int right = ACL_MEMCPY_HOST_TO_HOST;
  while (ends_of(right).src != found.src || ends_of(right).dst != found.dst) ++right;
  Report report("wrong_kind");
  report.what.add(call).add(" was called with ").add(kKinds[kind]).add(", but src ").pointer(src);
  report.what.add(" is ").add(name_of(found.src)).add(" memory and dst ").pointer(dst);
  report.what.add(" is ").add(name_of(found.dst)).add(" memory: that is ");
  report.what.add(kKinds[right]).add(".");
  report.at("here", call, stack_here());
  add_memory(report, reinterpret_cast<uintptr_t>(found.dst ? dst : src));
  report.advice = "give the kind that fits the two addresses, or exchange dst and src.";
  emit(report);
}

// Checks one end of a transfer. The bound is the size that the program asked for. The runtime
// itself also carries out copies that end in the bytes reserved by rounding up.
Status check_end(const char* call, const char* argument, const void* address, size_t count) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  size_t room = 0;
  bool inside = true;
  if (is_device_address(address)) {
    const Block* own = block_at(address);
    if (own != nullptr && own->live && own->is_reservation()) {
      return report_not_mapped(ACL_ERROR_RT_PARAM_INVALID, call, argument, address);
    }
    inside = own != nullptr && begin < own->reserved_end();
    if (inside && report_if_freed(call, argument, begin, begin + 1)) {
      return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
                  "the memory of %s at %p was freed", argument, address);
    }
    room = own != nullptr ? own->bytes_left(begin) : 0;
  } else {
    const Allocation own = find_allocation(address);
    if (own.behind == 0) return {};  // acl did not allocate it
    room = own.asked;
  }
  if (count <= room) return {};
  Report report("past_allocation");
  report.what.add(call).add(" was asked to ").add(argument[0] == 's' ? "read " : "write ");
  report.what.number(count).add(" bytes at ").add(argument).add(" ").pointer(address).add(", but ");
  report.what.number(room).add(" are left there of its allocation.");
  report.at("here", call, stack_here());
  add_memory(report, begin);
  report.advice = "count bytes, not elements, and allocate as many as are copied.";
  emit(report);
  if (inside) return {};  // the caller refuses what does not fit
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_memory, call,
              "%s %p lies behind its allocation", argument, address);
}

}  // namespace

void add_stream(Sentence& sentence, const Stream* stream) {
  const PinnedContext owner(contexts(), stream == nullptr ? nullptr : stream->owner());
  if (owner && owner->stream == stream) {
    sentence.add("the default stream");
  } else {
    sentence.add("stream ").pointer(stream);
  }
}

bool report_if_freed(const char* call, const char* argument, uintptr_t low, uintptr_t high) {
  const auto block = [](uintptr_t address) {
    const void* data = reinterpret_cast<const void*>(address);
    return is_device_address(data) ? block_at(data) : nullptr;
  };
  const Block* own = block(low);
  uintptr_t at = low;
  if (own != nullptr && own->mapped && own->live) {  // what it reaches may be unmapped
    at += own->bytes_left(low);
    if (at >= high) return false;
    own = block(at);
  }
  if (own == nullptr || own->live) return false;
  Report report("use_after_free");
  report.what.add(call).add(" got ").add(argument).add(" ").hex(low);
  if (at == low) {
    report.what.add(", which lies");
  } else {
    report.what.add(", whose byte ").number(at - low).add(" lies");
  }
  report.what.add(" in an allocation of ").number(own->size).add(" bytes that was freed.");
  report.at("here", call, stack_here());
  add_memory(report, at);
  report.advice = "free memory after its last use, and after the graphs that use it.";
  emit(report);
  return true;
}

Status report_not_mapped(int32_t code, const char* call, const char* argument,
                         const void* address) {
  Report report("not_mapped");
  report.what.add(call).add(" got ").add(argument).add(" ").pointer(address);
  report.what.add(", among addresses that are reserved, where nothing is mapped.");
  report.at("here", call, stack_here());
  add_memory(report, reinterpret_cast<uintptr_t>(address));
  report.advice = "map memory there with aclrtMapMem before it is used.";
  emit(report);
  return fail(code, Reason::wrong_memory, call, "nothing is mapped at %s %p, a reserved address",
              argument, address);
}

void add_memory(Report& report, uintptr_t address) {
  if (!is_device_address(reinterpret_cast<void*>(address))) return;
  const Block* own = block_at(reinterpret_cast<void*>(address));
  if (own == nullptr) return;
  report.at("memory made by", own->call, own->made);
  if (!own->live) report.at("freed by", own->freed_by, own->freed);
}

Status inspect_transfer(const char* call, const void* dst, size_t limit, const void* src,
                        size_t count, int kind) {
  if (dst == nullptr || (src == nullptr && kind >= 0)) return {};  // refused by the runtime
  if (src != nullptr) check_kind(call, dst, src, kind);
  if (count > limit) {
    Report report("past_allocation");
    report.what.add(call).add(" was asked to write ").number(count).add(" bytes where ");
    report.what.add(src != nullptr ? "destMax" : "maxCount").add(" allows ").number(limit).add(".");
    report.at("here", call, stack_here());
    add_memory(report, reinterpret_cast<uintptr_t>(dst));
    report.advice = "give the size of the allocation as the limit, and copy at most that.";
    emit(report);
    return {};
  }
  Status status = check_end(call, src != nullptr ? "dst" : "devPtr", dst, count);
  if (status.ok() && src != nullptr) status = check_end(call, "src", src, count);
  return status;
}

}  // namespace openaclnn::check
