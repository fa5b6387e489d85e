// SPDX-License-Identifier: Apache-2.0
// What all objects of the C interface share: a handle that is checked, a sentence when it is wrong.
#pragma once

#include "aclnn/aclnn_base.h"
#include "core/runtime/handles.h"
#include "core/runtime/observer.h"
#include "core/runtime/status.h"

namespace openaclnn {

inline Status must_not_be_null(const char* call, const char* argument) {
  return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: %s must not be NULL", call, argument);
}

// What observers call an object.
template <class T>
constexpr const char* thing();
template <>
constexpr const char* thing<aclTensor>() {
  return "aclTensor";
}
template <>
constexpr const char* thing<aclScalar>() {
  return "aclScalar";
}
template <>
constexpr const char* thing<aclIntArray>() {
  return "aclIntArray";
}
template <>
constexpr const char* thing<aclFloatArray>() {
  return "aclFloatArray";
}
template <>
constexpr const char* thing<aclBoolArray>() {
  return "aclBoolArray";
}
template <>
constexpr const char* thing<aclTensorList>() {
  return "aclTensorList";
}
template <>
constexpr const char* thing<aclScalarList>() {
  return "aclScalarList";
}
template <>
constexpr const char* thing<aclOpExecutor>() {
  return "aclOpExecutor";
}

template <class T>
Status not_alive(const char* call, const char* argument, const T* handle) {
  notify_refused(call, thing<T>(), argument, handle);
  return fail(ACLNN_ERR_PARAM_INVALID,
              "%s: %s must be alive, but %p was destroyed or never created", call, argument,
              static_cast<const void*>(handle));
}

template <class T>
Status check_alive(const HandlePool<T>& pool, const char* call, const char* argument,
                   const T* handle) {
  if (handle == nullptr) return must_not_be_null(call, argument);
  return pool.find(handle) != nullptr ? Status() : not_alive(call, argument, handle);
}

// nullptr, with a sentence, when too many are alive.
template <class T>
T* create_object(HandlePool<T>& pool, const char* call) {
  T* object = pool.create();
  if (object == nullptr)
    return fail(ACLNN_ERR_INNER, "%s: too many objects are alive", call).null();
  notify_made(call, thing<T>(), object);
  return object;
}

// NULL may be destroyed, as it may be freed.
template <class T>
aclnnStatus destroy_object(HandlePool<T>& pool, const char* call, const char* argument,
                           const T* handle) {
  const auto notify = [&](const T& object) { notify_ending(call, thing<T>(), &object); };
  if (handle == nullptr || pool.destroy(handle, notify)) return ACLNN_SUCCESS;
  return check_alive(pool, call, argument, handle).code();
}

// Reads a property of an object: *value = get(object).
template <class T, class Value, class Get>
aclnnStatus get_property(const HandlePool<T>& pool, const char* call, const char* argument,
                         const T* handle, const char* result, Value* value, Get get) {
  if (Status status = check_alive(pool, call, argument, handle); !status.ok()) return status.code();
  if (value == nullptr) return must_not_be_null(call, result).code();
  *value = get(*handle);
  return ACLNN_SUCCESS;
}

}  // namespace openaclnn
