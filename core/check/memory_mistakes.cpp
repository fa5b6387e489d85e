// SPDX-License-Identifier: Apache-2.0
// Copies and fills of the wrong kind or size, and work that nothing orders.
#include <utility>

#include "acl/acl_rt.h"
#include "core/check/state.h"
#include "core/runtime/device.h"
#include "core/runtime/memory.h"

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
  const Ends found = {is_device_address(src), is_device_address(dst)};
  const Ends said = ends_of(kind);
  if (found.src == said.src && found.dst == said.dst) return;
  int right = ACL_MEMCPY_HOST_TO_HOST;
  while (ends_of(right).src != found.src || ends_of(right).dst != found.dst) ++right;
  Report report("wrong_kind");
  report.what.add(call).add(" was told ").add(kKinds[kind]).add(", but src ").pointer(src);
  report.what.add(" is ").add(name_of(found.src)).add(" memory and dst ").pointer(dst);
  report.what.add(" is ").add(name_of(found.dst)).add(" memory: that is ");
  report.what.add(kKinds[right]).add(".");
  report.at("here", call, stack_here());
  add_memory(report, reinterpret_cast<uintptr_t>(found.dst ? dst : src));
  report.advice = "give the kind that fits the two addresses, or exchange dst and src.";
  tell(report);
}

// Of one end of a transfer.
Status check_end(const char* call, const char* argument, const void* address, size_t count) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  size_t room = 0;
  if (is_device_address(address)) {
    const Block* own = block_at(address);
    if (own != nullptr && own->live && own->is_reservation()) {
      return tell_not_mapped(ACL_ERROR_RT_PARAM_INVALID, call, argument, address);
    }
    const bool inside = own != nullptr && begin < own->reserved_end();
    if (inside && !own->live) {
      Report report("use_after_free");
      report.what.add(call).add(" got ").add(argument).add(" ").pointer(address);
      report.what.add(", which lies in an allocation of ").number(own->size);
      report.what.add(" bytes that was freed.");
      report.at("here", call, stack_here());
      add_memory(report, begin);
      report.advice = "free memory after its last use.";
      tell(report);
      return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s must be alive, but %p was freed", call,
                  argument, address);
    }
    room = inside ? usable_behind(*own, begin) : 0;
  } else {
    room = bytes_behind(address);
    if (room == 0) return {};  // not ours to know
  }
  if (count <= room) return {};
  Report report("past_allocation");
  report.what.add(call).add(" was told to ").add(argument[0] == 's' ? "read " : "write ");
  report.what.number(count).add(" bytes at ").add(argument).add(" ").pointer(address).add(", but ");
  report.what.number(room).add(" are left there of its allocation.");
  report.at("here", call, stack_here());
  add_memory(report, begin);
  report.advice = "count bytes, not elements, and allocate as many as are copied.";
  tell(report);
  if (room > 0) return {};  // who called us refuses what does not fit
  return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s must lie in an allocation, but %p does not", call,
              argument, address);
}

void tell_collision(const Access& now, const Access& other) {
  const bool host = now.stream == nullptr;
  const bool workspace =
      std::strcmp(now.argument, "workspace") == 0 || std::strcmp(other.argument, "workspace") == 0;
  Report report(!host         ? (workspace ? "workspace_overlap" : "unsynchronised_streams")
                : now.written ? "write_before_sync"
                              : "read_before_sync");
  report.what.add(now.call).add(now.written ? " writes " : " reads ").add(now.argument);
  report.what.add(", ").number(now.high - now.low).add(" bytes at ").hex(now.low);
  if (!host) add_stream(report.what.add(", on "), now.stream);
  report.what.add(host ? ", while " : "; ").add(other.call);
  report.what.add(host ? " may still " : " ");
  report.what.add(other.written ? (host ? "write" : "writes") : (host ? "read" : "reads"));
  report.what.add(" it (").add(other.argument).add(") on ");
  add_stream(report.what, other.stream);
  report.what.add(host ? ": the host has not waited for that stream."
                       : ", and nothing orders the two.");
  report.at("here", now.call, now.stack).at("the other is", other.call, other.stack);
  add_memory(report, now.low > other.low ? now.low : other.low);
  if (workspace) {
    report.advice =
        "give work on different streams workspaces of its own, or order it with events.";
  } else if (host && now.written) {
    report.advice = "call aclrtSynchronizeStream before memory is written that a stream uses.";
  } else if (host) {
    report.advice = "call aclrtSynchronizeStream before the results are read.";
  } else {
    report.advice =
        "record an event after the first (aclrtRecordEvent) and let the other stream wait for it "
        "(aclrtStreamWaitEvent), or synchronise the first stream in between.";
  }
  tell(report);
}

}  // namespace

void add_stream(Sentence& sentence, const Stream* stream) {
  const Context* owner = stream == nullptr ? nullptr : stream->owner();
  if (owner != nullptr && owner->stream == stream) {
    sentence.add("the default stream");
  } else {
    sentence.add("stream ").pointer(stream);
  }
}

Status tell_not_mapped(int32_t code, const char* call, const char* argument, const void* address) {
  Report report("not_mapped");
  report.what.add(call).add(" got ").add(argument).add(" ").pointer(address);
  report.what.add(", among addresses that are reserved, where nothing is mapped.");
  report.at("here", call, stack_here());
  add_memory(report, reinterpret_cast<uintptr_t>(address));
  report.advice = "map memory there with aclrtMapMem before it is used.";
  tell(report);
  return fail(code, "%s: %s must be memory, but at %p addresses are reserved and nothing is mapped",
              call, argument, address);
}

void add_memory(Report& report, uintptr_t address) {
  if (!is_device_address(reinterpret_cast<void*>(address))) return;
  const Block* own = block_at(reinterpret_cast<void*>(address));
  if (own == nullptr) return;
  report.at("memory made by", own->call, own->made);
  if (!own->live) report.at("freed by", own->freed_by, own->freed);
}

void take_down(const char* call, std::vector<Access> accesses, const Stream* stream) {
  const Stack here = stack_here();
  State& state = State::get();
  std::vector<std::pair<Access, Access>> collisions;
  {
    std::lock_guard lock(state.mutex);
    state.order.begin(stream);
    for (Access& access : accesses) {
      if (access.low >= access.high) continue;
      access.call = call;
      access.stream = stream;
      access.stack = here;
      const Access* other = state.order.add(block_of(access.low), access);
      if (other == nullptr) continue;
      collisions.emplace_back(access, *other);
      // As if the host had waited: what else lacks this synchronisation has the same cause.
      if (stream == nullptr) state.order.synchronised(collisions.back().second.stream);
    }
  }
  for (const auto& [now, other] : collisions) tell_collision(now, other);
}

Status inspect_transfer(const char* call, const void* dst, size_t limit, const void* src,
                        size_t count, int kind) {
  if (dst == nullptr || (src == nullptr && kind >= 0)) return {};  // refused as it is
  if (src != nullptr) check_kind(call, dst, src, kind);
  if (count > limit) {
    Report report("past_allocation");
    report.what.add(call).add(" was told to write ").number(count).add(" bytes where ");
    report.what.add(src != nullptr ? "destMax" : "maxCount").add(" allows ").number(limit).add(".");
    report.at("here", call, stack_here());
    add_memory(report, reinterpret_cast<uintptr_t>(dst));
    report.advice = "give the size of the allocation as the limit, and copy at most that.";
    tell(report);
    return {};
  }
  Status status = check_end(call, src != nullptr ? "dst" : "devPtr", dst, count);
  if (status.ok() && src != nullptr) status = check_end(call, "src", src, count);
  return status;
}

void touches(const char* call, const Range* ranges, int count, const Stream* stream) {
  if (stream == nullptr) stream = Stream::running_here();  // a task's copy is in its stream's order
  std::vector<Access> accesses;
  for (int i = 0; i < count; ++i) {
    const auto low = reinterpret_cast<uintptr_t>(ranges[i].address);
    Access access = {};
    access.argument = ranges[i].argument;
    access.low = low;
    access.high = low + ranges[i].bytes;
    access.written = ranges[i].written;
    accesses.push_back(std::move(access));
  }
  take_down(call, std::move(accesses), stream);
}

}  // namespace openaclnn::check
