// SPDX-License-Identifier: Apache-2.0
// Handles, results and tasks, shared by the functions of libhccl.
#pragma once

#include "core/hccl/engine.h"
#include "core/support/handles.h"

namespace openaclnn::hccl {

using Shared = std::shared_ptr<Communicator>;

// Records the sentence of the calling thread's failure.
int32_t failed(const char* call, Result result, const char* sentence);

// Calls f() and turns exceptions into a result.
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

// Checks memory of `count` elements, for calls of `ranks` ranks.
void check_buffer(const void* data, uint64_t count, uint32_t ranks = 1);

HandlePool<Shared>& communicators();
// Throws Failure where the library in which PyTorch communicates is missing.
Engine& engine();
const Timeouts& timeouts();

Shared find(void* comm);

// The name in a HcclCommConfig, or "".
std::string name_in(const void* config);
// Joins and makes the handle; throws Failure.
void join_ranks(const std::string& root_info, const std::string& name, uint32_t rank,
                uint32_t ranks, void** comm);

// ---- faults for tests of recovery (faults.cpp) ----

enum class Fault : uint8_t { none, error, silent };
// That of the next call of this process, whose rank it is.
Fault fault_of(uint32_t rank);
// In the task of the call: throws Failure unless there is none.
void commit(Fault fault);

// Submits the call as a task of the stream.
void submit(Shared communicator, Collective collective, void* stream);

}  // namespace openaclnn::hccl
