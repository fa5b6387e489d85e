// SPDX-License-Identifier: Apache-2.0
// What all objects of the C interface share: a handle that is checked, a sentence when it is wrong.
#pragma once

#include "aclnn/aclnn_base.h"
#include "core/runtime/handles.h"
#include "core/runtime/status.h"

namespace openaclnn {

inline Status must_not_be_null(const char* call, const char* argument) {
  return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: %s must not be NULL", call, argument);
}

template <class T>
Status check_alive(const HandlePool<T>& pool, const char* call, const char* argument,
                   const T* handle) {
  if (handle == nullptr) return must_not_be_null(call, argument);
  if (pool.find(handle) != nullptr) return {};
  return fail(ACLNN_ERR_PARAM_INVALID,
              "%s: %s must be alive, but %p was destroyed or never created", call, argument,
              static_cast<const void*>(handle));
}

// nullptr, with a sentence, when too many are alive.
template <class T>
T* create_object(HandlePool<T>& pool, const char* call) {
  T* object = pool.create();
  if (object == nullptr) (void)fail(ACLNN_ERR_INNER, "%s: too many objects are alive", call);
  return object;
}

// NULL may be destroyed, as it may be freed.
template <class T>
aclnnStatus destroy_object(HandlePool<T>& pool, const char* call, const char* argument,
                           const T* handle) {
  if (handle == nullptr || pool.destroy(handle)) return ACLNN_SUCCESS;
  return check_alive(pool, call, argument, handle).code();
}

// Answers a question about an object: *answer = get(object).
template <class T, class Answer, class Get>
aclnnStatus ask_object(const HandlePool<T>& pool, const char* call, const char* argument,
                       const T* handle, const char* result, Answer* answer, Get get) {
  if (Status status = check_alive(pool, call, argument, handle); !status.ok()) return status.code();
  if (answer == nullptr) return must_not_be_null(call, result).code();
  *answer = get(*handle);
  return ACLNN_SUCCESS;
}

}  // namespace openaclnn
