// SPDX-License-Identifier: Apache-2.0
// Streams by handle, and their C functions.
#include "acl/acl_rt.h"
#include "core/runtime/device.h"
#include "core/runtime/stream.h"

namespace openaclnn {

Status find_stream(const void* handle, Stream** stream, const char* call) {
  const char* head = call == nullptr ? "" : call;
  const char* colon = call == nullptr ? "" : ": ";
  if (handle == nullptr) {
    const Context* context = current_context();
    if (context == nullptr) {
      return fail(ACL_ERROR_RT_CONTEXT_NULL,
                  "%s%sthe default stream needs a current context: call aclrtSetDevice first", head,
                  colon);
    }
    *stream = context->stream;
    return {};
  }
  Stream* found = streams().find(handle);
  if (found == nullptr) {
    return fail(ACL_ERROR_RT_INVALID_HANDLE,
                "%s%sstream must be alive, but %p was destroyed or never created", head, colon,
                handle);
  }
  if (found->owner() == nullptr) {
    return fail(ACL_ERROR_RT_STREAM_CONTEXT,
                "%s%sthe context of stream must be alive, but that of %p was destroyed or reset",
                head, colon, handle);
  }
  *stream = found;
  return {};
}

}  // namespace openaclnn

using namespace openaclnn;

namespace {

Status create(const char* call, aclrtStream* stream) {
  if (stream == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "%s: stream must not be NULL", call);
  Context* context = current_context();
  if (context == nullptr) return no_context(call);
  *stream = streams().create(context);
  if (*stream == nullptr) {
    return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, "%s: all streams of this process are in use",
                call);
  }
  return {};
}

// A stream that its context left behind may be destroyed from anywhere.
Status find_own(const char* call, aclrtStream handle, Stream** stream) {
  if (handle == nullptr) return fail(ACL_ERROR_INVALID_PARAM, "%s: stream must not be NULL", call);
  *stream = streams().find(handle);
  if (*stream == nullptr) {
    return fail(ACL_ERROR_RT_INVALID_HANDLE,
                "%s: stream must be alive, but %p was destroyed or never created", call, handle);
  }
  if (*stream == Stream::running_here()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID, "%s: stream must not be destroyed by a task of its own",
                call);
  }
  const Context* owner = (*stream)->owner();
  if (owner != nullptr && owner != current_context()) {
    return fail(ACL_ERROR_RT_STREAM_CONTEXT,
                "%s: stream must belong to the current context, but %p belongs to another", call,
                handle);
  }
  return {};
}

}  // namespace

aclError aclrtCreateStream(aclrtStream* stream) {
  return create("aclrtCreateStream", stream).code();
}

// Priorities and flags steer hardware queues; every value is accepted and means a plain stream.
aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t, uint32_t) {
  return create("aclrtCreateStreamWithConfig", stream).code();
}

aclError aclrtDestroyStream(aclrtStream stream) {
  Stream* own = nullptr;
  if (Status status = find_own("aclrtDestroyStream", stream, &own); !status.ok()) {
    return status.code();
  }
  streams().destroy(own);
  return ACL_SUCCESS;
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  Stream* own = nullptr;
  if (Status status = find_own("aclrtDestroyStreamForce", stream, &own); !status.ok()) {
    return status.code();
  }
  own->discard_pending();
  streams().destroy(own);
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeStream(aclrtStream handle) {
  Stream* stream = nullptr;
  if (Status status = find_stream(handle, &stream, "aclrtSynchronizeStream"); !status.ok()) {
    return status.code();
  }
  if (stream == Stream::running_here()) {
    return fail(ACL_ERROR_RT_PARAM_INVALID,
                "aclrtSynchronizeStream: a task must not wait for the stream it runs on")
        .code();
  }
  stream->synchronize();
  return ACL_SUCCESS;
}
