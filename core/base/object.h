// SPDX-License-Identifier: Apache-2.0
// Create, look up and destroy objects of the C interface, with checked handles.
#pragma once

#include <type_traits>

#include "aclnn/aclnn_base.h"
#include "core/support/handles.h"
#include "core/support/observer.h"
#include "core/support/status.h"

namespace openaclnn {

inline Status must_not_be_null(const char* call, const char* argument,
                               ObjectKind kind = ObjectKind::none) {
  return fail(ACLNN_ERR_PARAM_NULLPTR, {Reason::null_argument, kind}, call, "%s must not be NULL",
              argument);
}

template <class T>
constexpr ObjectKind object_kind() {
  if constexpr (std::is_same_v<T, aclTensor>) return ObjectKind::tensor;
  if constexpr (std::is_same_v<T, aclScalar>) return ObjectKind::scalar;
  if constexpr (std::is_same_v<T, aclIntArray>) return ObjectKind::int_array;
  if constexpr (std::is_same_v<T, aclFloatArray>) return ObjectKind::float_array;
  if constexpr (std::is_same_v<T, aclBoolArray>) return ObjectKind::bool_array;
  if constexpr (std::is_same_v<T, aclTensorList>) return ObjectKind::tensor_list;
  if constexpr (std::is_same_v<T, aclScalarList>) return ObjectKind::scalar_list;
  if constexpr (std::is_same_v<T, aclOpExecutor>) return ObjectKind::executor;
}
template <class T>
inline constexpr ObjectKind kKindOf = object_kind<T>();

template <class T>
Status not_alive(const char* call, const char* argument, const T* handle) {
  return dead_handle(ACLNN_ERR_PARAM_INVALID, call, kKindOf<T>, argument, handle);
}

template <class T>
Status check_alive(const HandlePool<T>& pool, const char* call, const char* argument,
                   const T* handle) {
  if (handle == nullptr) return must_not_be_null(call, argument, kKindOf<T>);
  return pool.find(handle) != nullptr ? Status() : not_alive(call, argument, handle);
}

// Returns nullptr, with a sentence, when too many objects are alive.
template <class T, class... Arguments>
T* create_object(HandlePool<T>& pool, const char* call, const Arguments&... arguments) {
  T* object = pool.create(arguments...);
  if (object == nullptr)
    return fail(ACLNN_ERR_INNER, Reason::no_resource, call, "too many live objects of type %s",
                name_of(kKindOf<T>))
        .null();
  notify_made(call, kKindOf<T>, object);
  return object;
}

// Destroying NULL is a no-op.
template <class T>
aclnnStatus destroy_object(HandlePool<T>& pool, const char* call, const char* argument,
                           const T* handle) {
  const auto notify = [&](const T& object) { notify_ending(call, kKindOf<T>, &object); };
  if (handle == nullptr || pool.destroy(handle, notify)) return ACLNN_SUCCESS;
  return check_alive(pool, call, argument, handle).code();
}

// Fails, and holds nothing, unless the object is alive.
template <class T>
Status find_alive(HandlePool<T>& pool, const char* call, const char* argument, const T* handle,
                  typename HandlePool<T>::Hold* found) {
  if (handle == nullptr) return must_not_be_null(call, argument, kKindOf<T>);
  *found = typename HandlePool<T>::Hold(pool, handle);
  return *found ? Status() : not_alive(call, argument, handle);
}

// Reads a property of an object: *value = get(object).
template <class T, class Value, class Get>
aclnnStatus get_property(HandlePool<T>& pool, const char* call, const char* argument,
                         const T* handle, const char* result, Value* value, Get get) {
  typename HandlePool<T>::Hold found;
  if (Status status = find_alive(pool, call, argument, handle, &found); !status.ok())
    return status.code();
  if (value == nullptr) return must_not_be_null(call, result).code();
  *value = get(*found);
  return ACLNN_SUCCESS;
}

}  // namespace openaclnn
