// SPDX-License-Identifier: Apache-2.0
// All streams of the process.
#pragma once

#include "core/runtime/deadline.h"
#include "core/runtime/handles.h"
#include "core/runtime/status.h"
#include "core/runtime/stream.h"

namespace openaclnn {

HandlePool<Stream>& streams();

// Finds and pins the stream behind a handle of the C interface; NULL is the default stream of this
// thread's current context. Fails, with a sentence that names no call, when the handle is not a
// live stream, its context is gone, or there is no current context. Observers learn `call`, where
// it is given.
Status find_stream(const void* handle, PinnedStream* stream, const char* call = nullptr);

// Waits for what was submitted to a stream, unless the handle is wrong or this thread must not
// wait; says nothing of that, and leaves failures for the next synchronisation.
void wait_quietly(const void* handle);

// Waits for what was submitted so far to all streams that `pick` accepts; `pick` is called once for
// each stream and must not block. Other threads may submit to, create and destroy streams
// meanwhile.
using PickStream = bool (*)(Stream& stream, void* context);
void drain_streams(PickStream pick, void* context);
// Does the same with a deadline; returns false if that came first. If memory runs out, it calls
// `pick` a second time for each stream when the deadline is never, and throws std::bad_alloc
// otherwise.
bool drain_streams(PickStream pick, void* context, Deadline deadline);
// Returns the first failure among them, and forgets all of theirs.
Status take_failures(const char* call, PickStream pick, void* context);

}  // namespace openaclnn
