// SPDX-License-Identifier: Apache-2.0
// The state of check mode and the functions its files share.
//
// How this works
//
// With OPENACLNN_CHECK=1, check.cpp installs an Observer (core/support/observer.h) and a
// PlanObserver (core/base/plan_observer.h). The runtime calls them; each file of this folder
// handles one kind of mistake and reports it:
//
//   runtime call --> observer --> *_mistakes.cpp --> Report --> report.cpp --> stderr, JSON
//                                    |   ^
//                       updates and  v   |  asks
//        Ledger             every object: kind, creation, end           leaks, stale handles
//        Allocations        every block of device memory                bounds, wrong frees
//          MappingIndex     mappings in reserved addresses
//        HappensBefore      vector clocks of host and streams           data races, early frees
//        InitialisedBytes   one bit for each byte: ever written?        reads of unwritten memory
//        suppression        resources missing after a refused call      consequences, not mistakes
//
// Device memory of the program is inaccessible (allocations.h): host_access.cpp turns a fault there
// into a report. The library works at `reachable` addresses instead, a constant distance away.
//
// Phase 2 of an operator: launches() (access_mistakes.cpp) takes the byte ranges of all operands
// from the plan, adds them to HappensBefore as accesses of the stream, requires that inputs are
// initialised, and marks outputs. All of this happens at submission, before the work runs;
// reverted_launches.cpp undoes the marks of work that never ran or left outputs unwritten.
//
// A report has call sites (stacks as addresses; stack.cpp resolves names only when it is printed)
// and an advice. It is printed once for each kind and call sites.
//
// One lock guards the state; reports are written without it. What a signal handler uses (reports,
// stacks, allocations) neither locks nor allocates.
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
#include "core/support/observer.h"
#include "core/runtime/stream.h"

namespace openaclnn::check {

// A tensor as phase 1 saw it.
struct PlannedTensor {
  const char* name;
  std::shared_ptr<const Tensor> view;
  const char* made_by;
  Stack made;
  const void* handle = nullptr;
  uint64_t number = 0;  // of its object in the ledger
};

struct State {
  State();
  static State& get();

  std::mutex mutex;
  Ledger ledger;
  HappensBefore happens_before;
  InitialisedBytes initialised;
  // Streams with a callback that may not have run yet: copies made in the callback happen before
  // work submitted already.
  std::unordered_set<const Stream*> calling_back;
  std::unordered_map<const aclOpExecutor*, std::vector<PlannedTensor>> plans;
  std::unordered_set<const void*> not_launched;  // executors whose last phase 2 was refused
  std::vector<Access> dropped;                   // writes of work that never ran
  std::unordered_set<std::string> names;
  std::atomic<bool> was_initialised = false;  // aclInit has succeeded once
  std::atomic<bool> finalised = false;  // aclFinalize has reported leaks, and no aclInit followed
};

// The block of memory that an access belongs to; host memory is one block.
uintptr_t block_of(uintptr_t address);

void used();                    // notes that the program made a watched call
void called(const char* call);  // the same; reports it after aclFinalize

// Reports work on a stream of another device than the current one, or with memory of another
// device.
bool check_stream_device(const char* call, const Stream& stream);  // whether it did not
void check_launch_device(const char* op, const aclOpExecutor& executor, const void* workspace,
                         uint64_t workspace_size, const Stream& stream);

void drain_unseen();  // waits for all streams; does not count as a wait of the program

void add_stream(Sentence& sentence, const Stream* stream);  // "stream 0x…", "the default stream"
void add_memory(Report& report, uintptr_t address);         // its call sites
// Whether memory that the program freed or unmapped is in the range, which it reports.
bool report_if_freed(const char* call, const char* argument, uintptr_t low, uintptr_t high);
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
// Drops the record of dropped writes to this range. Under the lock of the state.
void forget_dropped(State& state, uintptr_t low, uintptr_t high);

void ending(const char* call, ObjectKind kind, const void* handle);
void refused(const char* call, ObjectKind kind, const char* argument, const void* handle);
void failed(const ReportedFailure& failure, const Caller* caller);
void finalised(const char* call);

void planned(const char* op, const aclOpExecutor& executor, const NamedTensor* tensors, int count);
Status inspect_launch(const char* op, const aclOpExecutor& executor, const void* workspace,
                      uint64_t workspace_size);
std::shared_ptr<const void> recorded(const aclOpExecutor& executor, const void* workspace,
                                     uint64_t workspace_size);
void replayed(const char* op, const void* recorded, const Stream& stream);
void launches(const char* op, const aclOpExecutor& executor, const void* workspace,
              uint64_t workspace_size, const Stream& stream);

}  // namespace openaclnn::check
