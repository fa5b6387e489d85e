// SPDX-License-Identifier: Apache-2.0
// Devices and contexts. A device is a name for this machine; a context owns streams, one of them
// its default.
#pragma once

#include <cstdint>

#include "core/runtime/handles.h"
#include "core/runtime/status.h"
#include "core/runtime/stream.h"

namespace openaclnn {

struct Context {
  int32_t device;
  bool is_default;  // made by aclrtSetDevice, shared by all threads on that device, ends with
                    // aclrtResetDevice
  Stream* stream;   // the default stream, a handle of streams()
};

HandlePool<Context>& contexts();

int32_t
device_count();  // OPENACLNN_DEVICES, default 1, and of those what ASCEND_RT_VISIBLE_DEVICES lists
Context* current_context();  // of the calling thread; nullptr before aclrtSetDevice, or when it was
                             // destroyed
Status no_context(const char* call);  // the failure of a call that needs a current context

// The stream behind a handle of the C interface; NULL is the default stream of this thread's
// current context. Fails with a sentence (headed by `call`, if given) when the handle is not a live
// stream, its context is gone, or there is no current context.
Status find_stream(const void* handle, Stream** stream, const char* call = nullptr);

}  // namespace openaclnn
