// SPDX-License-Identifier: Apache-2.0
// What check mode knows about the program, and what its parts share. One lock guards it; reports
// are written without the lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/plan_observer.h"
#include "core/check/allocations.h"
#include "core/check/ledger.h"
#include "core/check/happens_before.h"
#include "core/check/report.h"
#include "core/check/initialised_bytes.h"
#include "core/runtime/observer.h"
#include "core/runtime/stream.h"

namespace openaclnn::check {

// A tensor as phase 1 saw it.
struct PlannedTensor {
  const char* name;
  std::shared_ptr<const Tensor> view;
  const char* made_by;
  Stack made;
};

struct State {
  State();
  static State& get();

  std::mutex mutex;
  Ledger ledger;
  HappensBefore happens_before;
  InitialisedBytes initialised;
  // Streams whose work so far includes a callback that may not have run. Copies that the program
  // makes in the callback come before work that was already submitted.
  std::unordered_set<const Stream*> calling_back;
  std::unordered_map<const aclOpExecutor*, std::vector<PlannedTensor>> plans;
  std::unordered_set<const void*> not_launched;  // executors whose last phase 2 was refused
  std::vector<Access> dropped;                   // writes of work that never ran
  std::unordered_set<std::string> names;
  std::atomic<bool> finalised = false;  // leaks were looked for
};

// The block of memory that an access belongs to; host memory is one block.
uintptr_t block_of(uintptr_t address);

void used();  // the program made a call that is looked at

// Reports work on a stream of another device than the current one, or with memory of another
// device.
bool check_stream_device(const char* call, const Stream& stream);  // whether it did not
void check_launch_device(const char* op, const aclOpExecutor& executor, const void* workspace,
                         uint64_t workspace_size, const Stream& stream);

void drain_unseen();  // waits for all streams; does not count as a wait of the program

void add_stream(Sentence& sentence, const Stream* stream);  // "stream 0x…", "the default stream"
void add_memory(Report& report, uintptr_t address);         // its places
// Reports an address of a reservation where nothing is mapped.
Status report_not_mapped(int32_t code, const char* call, const char* argument, const void* address);
// Reports aclrtFree, aclrtUnmapMem, … of an address that lies in a reservation, or should.
void report_wrong_range(const char* call, ObjectKind kind, const void* address);

// ---- what the observers do, by the kind of mistake ----

Status inspect_transfer(const char* call, const void* dst, size_t limit, const void* src,
                        size_t count, int kind);
void touches(const char* call, const Range* ranges, int count, const Stream* stream);
void works(const char* call, const Range* ranges, int count, const Stream* stream);
void left(const void* reachable, size_t bytes);
void dropped(const char* call, const Range& range);
void not_launched(const void* executor);
void dropped_plan(const char* op, const Executor& plan);
// The range was written since, or freed. Under the lock of the state.
void forget_dropped(State& state, uintptr_t low, uintptr_t high);

void ending(const char* call, ObjectKind kind, const void* handle);
void refused(const char* call, ObjectKind kind, const char* argument, const void* handle);
void failed(const ReportedFailure& failure, const Caller* caller);
void finalised(const char* call);

void planned(const char* op, const aclOpExecutor& executor, const NamedTensor* tensors, int count);
Status inspect_launch(const char* op, const aclOpExecutor& executor, const void* workspace,
                      uint64_t workspace_size);
void launches(const char* op, const aclOpExecutor& executor, const void* workspace,
              uint64_t workspace_size, const Stream& stream);

}  // namespace openaclnn::check
