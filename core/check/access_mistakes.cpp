// SPDX-License-Identifier: Apache-2.0
// Reports data races between unordered work, and reads of bytes that were never written.
#include <algorithm>
#include <string_view>
#include <utility>

#include "acl/acl_rt.h"
#include "core/base/dtype.h"
#include "core/base/view.h"
#include "core/check/suppression.h"
#include "core/check/state.h"

namespace openaclnn::check {
namespace {

void report_collision(const Access& now, const Access& other) {
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
    report.advice = "give work on different streams separate workspaces, or order it with events.";
  } else if (host && now.written) {
    report.advice = "call aclrtSynchronizeStream before memory is written that a stream uses.";
  } else if (host) {
    report.advice = "call aclrtSynchronizeStream before the results are read.";
  } else {
    report.advice =
        "record an event after the first (aclrtRecordEvent) and let the other stream wait for it "
        "(aclrtStreamWaitEvent), or synchronise the first stream in between.";
  }
  emit(report);
}

// A read of bytes of which some were never written.
struct NeverWritten {
  Access access;
  Missing missing;
  Access dropped;  // the dropped write to these bytes; no call: none
};

void report_never_written(const NeverWritten& found) {
  const Access& now = found.access;
  const Missing& missing = found.missing;
  Report report("never_written");
  report.what.add(now.call).add(" reads ").add(now.argument).add(", ").number(missing.of);
  report.what.add(" bytes at ").hex(now.low).add(", but ");
  if (missing.count == missing.of) {
    report.what.add("none of them was ever given a value.");
  } else {
    report.what.number(missing.count);
    report.what.add(" of them were never given a value, the first at byte ");
    report.what.number(missing.first - now.low).add(".");
  }
  if (found.dropped.call != nullptr) {
    report.what.add(" ").add(found.dropped.call);
    report.what.add(" was to write them, but never ran: its stream was destroyed by force.");
  }
  report.at("here", now.call, now.stack);
  if (found.dropped.call != nullptr) report.at("dropped by", nullptr, found.dropped.stack);
  add_memory(report, now.low);
  report.advice =
      found.dropped.call != nullptr
          ? "call aclrtSynchronizeStream before a stream is destroyed by force, or do not use what "
            "its work was to write."
          : "aclrtMalloc leaves memory as it was: copy the input there, clear it with aclrtMemset, "
            "or run the operator that computes it, before it is read.";
  report.is_consequence = is_consequence(MissingResource::result);
  emit(report);
}

enum class Kind {
  copy,
  own,      // an operator of openaclnn writes all of its outputs
  foreign,  // another library reports later what it left unwritten (`left`)
};

// A row that only moves values (`moved`), from memory that nothing wrote: a mistake only where its
// result is read. torch_npu pads the results of an all_gather before they are received.
bool moves_nothing(const State& state, const std::vector<Access>& accesses) {
  const auto is_moved = [](const Access& access) { return access.moved; };
  const auto is_source = [](const Access& access) { return access.read && !access.written; };
  const auto is_unwritten = [&](const Access& access) {
    if (!is_source(access)) return true;
    const Missing missing = access.view != nullptr
                                ? state.initialised.missing(*access.view)
                                : state.initialised.missing(access.low, access.high);
    return missing.count > 0 && missing.count == missing.of;
  };
  return std::any_of(accesses.begin(), accesses.end(), is_moved) &&
         std::all_of(accesses.begin(), accesses.end(), is_unwritten);
}

// Reads need initialised bytes. Written bytes, and those just reported, become initialised. A copy
// within the device copies the state of each byte.
std::vector<NeverWritten> note_values(State& state, const std::vector<Access>& accesses,
                                      Kind kind) {
  const bool is_copy = kind == Kind::copy;
  const auto on_device = [](const Access& access) {
    return is_device_address(reinterpret_cast<void*>(access.low));
  };
  std::vector<NeverWritten> found;
  if (kind == Kind::foreign && moves_nothing(state, accesses)) return found;
  const bool certain = state.calling_back.empty();
  const bool within =
      is_copy && accesses.size() == 2 && on_device(accesses[0]) && on_device(accesses[1]);
  if (within && certain) {
    const Access &dst = accesses[0], &src = accesses[1];
    state.initialised.copy(dst.low, src.low, src.high - src.low);
    return found;
  }
  for (const Access& access : accesses) {
    if (!access.read || !certain || within) continue;
    const Missing missing = access.view != nullptr ? state.initialised.missing(*access.view)
                            : is_copy
                                ? state.initialised.missing_beside_gaps(access.low, access.high)
                                : state.initialised.missing(access.low, access.high);
    if (missing.count == 0) continue;
    found.push_back({access, missing, {}});
    for (const Access& write : state.dropped) {
      if (write.low <= missing.first && missing.first < write.high) found.back().dropped = write;
    }
    state.initialised.mark(access.low, access.high);
  }
  for (const Access& access : accesses) {
    if (!access.written) continue;
    const bool may_leave = kind == Kind::foreign && !access.read;
    InitialisedBytes::Snapshot before;
    if (may_leave) before = state.initialised.snapshot(access.low, access.high);
    if (access.view != nullptr) {
      state.initialised.mark(*access.view);
    } else {
      state.initialised.mark(access.low, access.high);
      forget_dropped(state, access.low, access.high);
    }
    if (may_leave) state.initialised.remember(std::move(before));
    if (access.storage_low < access.storage_high) {
      state.initialised.mark_gaps(access.storage_low, access.storage_high);
    }
  }
  return found;
}

void take_down(const char* call, std::vector<Access> accesses, const Stream* stream, Kind kind) {
  for (const Access& own : accesses) {
    (void)report_if_freed(call, own.argument, own.low, own.high);
  }
  const Stack here = stack_here();
  State& state = State::get();
  std::vector<std::pair<Access, Access>> collisions;
  std::vector<NeverWritten> never_written;
  {
    std::lock_guard lock(state.mutex);
    state.happens_before.begin(stream);
    for (Access& access : accesses) {
      access.call = call;
      access.stream = stream;
      access.stack = here;
      if (access.low >= access.high) continue;
      const Access* other = state.happens_before.add(block_of(access.low), access);
      if (other == nullptr) continue;
      collisions.emplace_back(access, *other);
      // Continues as if the host had waited: other accesses that lack this synchronisation have the
      // same cause.
      if (stream == nullptr) state.happens_before.synchronised(collisions.back().second.stream);
    }
    never_written = note_values(state, accesses, kind);
  }
  for (const auto& [now, other] : collisions) report_collision(now, other);
  for (const NeverWritten& read : never_written) report_never_written(read);
}

// The byte ranges of the executor's tensors, by name.
std::vector<Access> accesses_of(const aclOpExecutor& executor) {
  State& state = State::get();
  std::unordered_map<std::string_view, std::shared_ptr<const Tensor>> views;
  {
    std::lock_guard lock(state.mutex);
    if (const auto plan = state.plans.find(&executor); plan != state.plans.end()) {
      for (const PlannedTensor& tensor : plan->second) views[tensor.name] = tensor.view;
    }
  }
  std::vector<Access> accesses;
  executor.for_each_operand([&](const Executor::Operand& operand) {
    const auto data = reinterpret_cast<uintptr_t>(operand.data);
    Access access = {};
    access.argument = operand.name;
    access.low = data + static_cast<uintptr_t>(operand.low);
    access.high = data + static_cast<uintptr_t>(operand.high);
    access.read = operand.role != Role::output;
    access.written = operand.role != Role::input;
    access.moved = executor.moves() && operand.role == Role::input;
    if (const auto planned = views.find(operand.name); planned != views.end()) {
      auto view = std::make_shared<Tensor>(*planned->second);
      view->data = operand.data;  // the current address
      int64_t storage = 0;
      if (!element_count(view->storage, &storage)) storage = 0;
      const uintptr_t end = data + static_cast<size_t>(storage) * dtype_size(view->dtype);
      const bool dense = Runs(*view).dense();
      if (!dense || data < access.low || access.high < end) {
        access.storage_low = std::min(data, access.low);
        access.storage_high = std::max(end, access.high);
      }
      if (!dense) access.view = std::move(view);
    }
    accesses.push_back(std::move(access));
  });
  return accesses;
}

void take_down_ranges(const char* call, const Range* ranges, int count, const Stream* stream,
                      Kind kind) {
  called(call);
  if (stream != nullptr) (void)check_stream_device(call, *stream);
  if (stream == nullptr) stream = Stream::running_here();  // a task's copy is in its stream's order
  std::vector<Access> accesses;
  for (int i = 0; i < count; ++i) {
    Access access = {};
    access.argument = ranges[i].argument;
    access.low = reinterpret_cast<uintptr_t>(ranges[i].address);
    access.high = access.low + ranges[i].bytes;
    access.read = !ranges[i].written;
    access.written = ranges[i].written;
    access.moved = ranges[i].moved;
    accesses.push_back(std::move(access));
  }
  take_down(call, std::move(accesses), stream, kind);
}

}  // namespace

void touches(const char* call, const Range* ranges, int count, const Stream* stream) {
  take_down_ranges(call, ranges, count, stream, Kind::copy);
}

void works(const char* call, const Range* ranges, int count, const Stream* stream) {
  take_down_ranges(call, ranges, count, stream, Kind::foreign);
}

namespace {

struct Recorded {
  std::vector<Access> accesses;
  Kind kind;
};

// What a run of the plan accesses.
Recorded accesses_of_run(const aclOpExecutor& executor, const void* workspace,
                         uint64_t workspace_size) {
  std::vector<Access> accesses = accesses_of(executor);
  if (workspace_size > 0) {
    Access access = {};
    access.argument = "workspace";
    access.low = reinterpret_cast<uintptr_t>(workspace);
    access.high = access.low + workspace_size;
    access.written = true;
    accesses.push_back(std::move(access));
  }
  {
    State& state = State::get();
    std::lock_guard lock(state.mutex);
    state.not_launched.erase(&executor);
  }
  return {std::move(accesses), executor.is_foreign() ? Kind::foreign : Kind::own};
}

}  // namespace

void launches(const char* op, const aclOpExecutor& executor, const void* workspace,
              uint64_t workspace_size, const Stream& stream) {
  check_launch_device(op, executor, workspace, workspace_size, stream);
  Recorded run = accesses_of_run(executor, workspace, workspace_size);
  take_down(op, std::move(run.accesses), &stream, run.kind);
}

std::shared_ptr<const void> recorded(const aclOpExecutor& executor, const void* workspace,
                                     uint64_t workspace_size) {
  return std::make_shared<const Recorded>(accesses_of_run(executor, workspace, workspace_size));
}

void replayed(const char* op, const void* recorded, const Stream& stream) {
  const auto& run = *static_cast<const Recorded*>(recorded);
  take_down(op, run.accesses, &stream, run.kind);
}

}  // namespace openaclnn::check
