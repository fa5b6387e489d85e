// SPDX-License-Identifier: Apache-2.0
// The C functions of streams.
#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/capture.h"
#include "core/runtime/device.h"
#include "core/support/named_callbacks.h"
#include "core/support/observer.h"
#include "core/runtime/stream.h"
#include "core/runtime/stream_library.h"

using namespace openaclnn;

namespace openaclnn {

Status create_stream(const char* call, aclrtStream* stream, StreamSettings settings) {
  if (Status status = not_null(call, "stream", stream); !status.ok()) return status;
  const PinnedContext context = current_context();
  if (!context) return no_context(call);
  *stream = streams().create(context.get(), settings);
  if (*stream == nullptr) {
    return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, Reason::no_resource, call,
                "too many live streams");
  }
  notify_made(call, ObjectKind::stream, *stream);
  notify_stream_state(*stream, ACL_RT_STREAM_STATE_CREATE_POST);
  return {};
}

}  // namespace openaclnn

namespace {

// A stream whose context was destroyed may be destroyed by any thread.
Status find_own(const char* call, aclrtStream handle, PinnedStream* stream) {
  if (Status status = not_null(call, "stream", handle, ObjectKind::stream); !status.ok())
    return status;
  *stream = PinnedStream(streams(), handle);
  if (!*stream) {
    return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::stream, "stream", handle);
  }
  if (stream->get() == Stream::running_here()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::deadlock, call,
                "a task must not destroy the stream it runs on");
  }
  const PinnedContext here = current_context();  // first: another thread may end both meanwhile
  const Context* owner = (*stream)->owner();
  if (owner != here.get() && contexts().find(owner) != nullptr) {
    return fail(ACL_ERROR_RT_STREAM_CONTEXT, {Reason::foreign_handle, ObjectKind::stream}, call,
                "stream %p belongs to another context than the current one", handle);
  }
  return {};
}

Status destroy(const char* call, aclrtStream handle, bool by_force) {
  PinnedStream own;
  if (Status status = find_own(call, handle, &own); !status.ok()) return status;
  const Stream* stream = own.get();
  notify_stream_state(handle, ACL_RT_STREAM_STATE_DESTROY_PRE);
  if (by_force) own->discard_pending();
  own.release();
  notify_ending(call, ObjectKind::stream, stream);
  if (!streams().destroy(stream)) {
    return fail(ACL_ERROR_RT_INVALID_HANDLE, {Reason::dead_handle, ObjectKind::stream}, call,
                "stream %p was destroyed by another thread", handle);
  }
  notify_synchronised(stream);
  return {};
}

// Waits for the work of a stream. `failure` receives its failure; nullptr: not a wait of the
// program.
Status wait_for(const char* call, aclrtStream handle, int32_t timeout, TaskFailure* failure) {
  if (Status status = check_timeout(call, timeout); !status.ok()) return status;
  PinnedStream stream;
  if (Status status = find_stream(handle, &stream); !status.ok()) {
    return with_call(status, call);
  }
  if (!stream->awaited()) return {};
  if (stream.get() == Stream::running_here()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::deadlock, call,
                "a task must not wait for the stream it runs on");
  }
  if (failure != nullptr) {
    Status status = check_not_captured(call, *stream, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                                       "call it before or after the capture");
    if (!status.ok()) return status;
  }
  const Stream::Waiter waiter(*stream);
  if (!waiter.wait(Deadline::in_milliseconds(timeout))) {
    return fail(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, Reason::timed_out, call,
                "timed out: the stream is still working after %d ms", timeout);
  }
  if (failure == nullptr) return {};
  notify_synchronised(stream.get());
  if (waiter.aborted()) {
    return fail(ACL_ERROR_RT_STREAM_ABORT, {Reason::unreachable, ObjectKind::stream}, call,
                "the work of the stream was dropped by aclrtStreamAbort or aclrtDeviceTaskAbort");
  }
  *failure = waiter.forget_failure();
  return {};
}

Status synchronize_stream(const char* call, aclrtStream handle, int32_t timeout) {
  TaskFailure failure;
  Status status = wait_for(call, handle, timeout, &failure);
  return status.ok() ? failure.as_status(call) : status;
}

}  // namespace

aclError aclrtCreateStream(aclrtStream* stream) {
  return create_stream("aclrtCreateStream", stream, {}).code();
}

// Priorities have no effect: the scheduler orders threads of the host.
aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  return create_stream("aclrtCreateStreamWithConfig", stream, {flag, priority}).code();
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return destroy("aclrtDestroyStream", stream, false).code();
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return destroy("aclrtDestroyStreamForce", stream, true).code();
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return synchronize_stream("aclrtSynchronizeStream", stream, -1).code();
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  return synchronize_stream("aclrtSynchronizeStreamWithTimeout", stream, timeout).code();
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  constexpr const char* call = "aclrtStreamQuery";
  if (Status null = not_null(call, "status", status); !null.ok()) return null.code();
  PinnedStream found;
  if (Status missing = find_stream(stream, &found); !missing.ok()) {
    return with_call(missing, call).code();
  }
  if (Status captured =
          is_bound(*found)
              ? Status()
              : check_not_captured(call, *found, ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                                   "aclmdlRICaptureGetInfo says whether a stream is captured");
      !captured.ok()) {
    return captured.code();
  }
  const bool done = found->query();
  if (done) notify_synchronised(found.get());
  *status = done ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

void* openaclnn_reachable(const void* address) { return reachable(address); }

bool openaclnn_is_checked() { return observer != nullptr; }

void openaclnn_works(const char* call, const Range* ranges, int count, void* stream) {
  if (observer == nullptr) return;
  PinnedStream found;
  if (Stream::running_here() != nullptr || find_stream(stream, &found).ok())
    observer->works(call, ranges, count, found.get());
}

void openaclnn_left(const void* reachable, uint64_t bytes) {
  if (observer != nullptr) observer->left(reachable, bytes);
}

int32_t openaclnn_wait_for_stream(void* stream) {
  return wait_for("openaclnn_wait_for_stream", stream, -1, nullptr).code();
}

int32_t openaclnn_device_here() {
  const PinnedContext owner(contexts(), Stream::owner_here());  // another thread may end it
  return owner ? owner->device : current_device();
}

bool openaclnn_records(void* handle) {
  const PinnedStream stream(streams(), handle);  // a default stream records nothing
  return stream && stream->records();
}

int32_t openaclnn_hand_over(void* handle, const Task* task) {
  PinnedStream stream;
  Status status = find_stream(handle, &stream);
  if (status.ok()) status = check_running(*stream);
  try {
    if (status.ok() && !stream->hand_over(*task)) status = no_thread("openaclnn_hand_over");
  } catch (const std::bad_alloc&) {
    status = fail(ACL_ERROR_BAD_ALLOC, Reason::out_of_memory, nullptr, "out of memory");
  }
  if (!status.ok()) task->drop(task->context);
  return status.code();
}
