// SPDX-License-Identifier: Apache-2.0
// What the functions of libhccl share: handles, results, and calls as tasks.
#pragma once

#include "core/npu/hccl.h"

namespace openaclnn::hccl {

using Shared = std::shared_ptr<Communicator>;

// Records the sentence of the calling thread's failure.
int32_t failed(const char* call, Result result, const char* sentence);

// f(), and what it threw as a result.
template <class F>
int32_t guarded(const char* call, F f) {
  try {
    f();
    return kSuccess;
  } catch (const Failure& failure) {
    return failed(call, failure.code, failure.what());
  } catch (const std::exception& error) {
    return failed(call, kInternal, error.what());
  }
}

inline void not_null(const char* name, const void* pointer) {
  if (pointer == nullptr) throw Failure(kNull, std::string(name) + " must not be NULL");
}

size_t width(int32_t dtype);  // bytes of an element

// Memory of `count` elements, in calls of so many ranks.
void check_buffer(const void* data, uint64_t count, uint32_t ranks = 1);

Shared find(void* comm);

// The call becomes a task of the stream.
void submit(Shared communicator, Collective collective, void* stream);

}  // namespace openaclnn::hccl
