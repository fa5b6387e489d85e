// SPDX-License-Identifier: Apache-2.0
// What the libraries beside this one ask of streams, by handle: those of collectives and of ATen.
#pragma once

#include <cstdint>

#include "core/support/status.h"
#include "core/runtime/stream_task.h"

namespace openaclnn {
struct Range;  // observer.h
}

// The address at which a library accesses the program's address; they differ in check mode.
extern "C" void* openaclnn_reachable(const void* address);
// Returns whether this process is in check mode.
extern "C" bool openaclnn_is_checked();
// Reports to check mode what work reads and writes, before it is submitted or while it runs.
extern "C" void openaclnn_works(const char* call, const openaclnn::Range* ranges, int count,
                                void* stream);
// Reports to check mode that work leaves these bytes of its outputs unwritten; an address of
// openaclnn_reachable.
extern "C" void openaclnn_left(const void* reachable, uint64_t bytes);
// Waits for submitted work. Failures stay for the next synchronisation; for check mode it is not a
// wait of the program.
extern "C" int32_t openaclnn_wait_for_stream(void* stream);
// Stream::hand_over by handle. `drop` is called also when nothing was submitted.
extern "C" int32_t openaclnn_hand_over(void* stream, const openaclnn::Task* task);
// The device of the stream whose task the calling thread runs, or else the thread's device.
extern "C" int32_t openaclnn_device_here();
// Whether the stream records its tasks for a graph.
extern "C" bool openaclnn_records(void* stream);

namespace openaclnn {

// Makes the next synchronisation of the stream fail, as if one of its tasks had.
int32_t fail_stream(void* stream, const TakenFailure& failure);
// A task that fails calls this while it runs. The next synchronisation of its stream fails, and
// that of every other stream of the context, since they wait for events behind the task and use
// its results.
void fail_context(const TakenFailure& failure);

}  // namespace openaclnn
