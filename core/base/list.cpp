// SPDX-License-Identifier: Apache-2.0
// Arrays and lists of the C interface: one template for all, one more for what lists own.
#include "core/base/list.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/object.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

constexpr size_t kMaxLists = 1 << 18;

}  // namespace

HandlePool<aclIntArray>& int_arrays() { return pool_of<aclIntArray>(kMaxLists); }
HandlePool<aclFloatArray>& float_arrays() { return pool_of<aclFloatArray>(kMaxLists); }
HandlePool<aclBoolArray>& bool_arrays() { return pool_of<aclBoolArray>(kMaxLists); }
HandlePool<aclTensorList>& tensor_lists() { return pool_of<aclTensorList>(kMaxLists); }
HandlePool<aclScalarList>& scalar_lists() { return pool_of<aclScalarList>(kMaxLists); }

namespace {

template <class T>
T* create(HandlePool<T>& pool, const char* call, const typename T::Element* values, uint64_t size) {
  using Element = typename T::Element;
  if (values == nullptr && size > 0) {
    return must_not_be_null(call, "value").null();
  }
  std::unique_ptr<Element[]> copy;
  if (size <= PTRDIFF_MAX / sizeof(Element)) copy.reset(new (std::nothrow) Element[size]);
  if (copy == nullptr) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::out_of_memory, call,
                "out of memory: a list of %llu elements", static_cast<unsigned long long>(size))
        .null();
  }
  std::copy_n(values, size, copy.get());
  T* object = create_object(pool, call);
  if (object == nullptr) return nullptr;
  object->data = std::move(copy);
  object->size = size;
  return object;
}

template <class T, class Element>
T* create_list(HandlePool<T>& pool, HandlePool<Element>& elements, const char* call,
               const Element* const* values, uint64_t size) {
  for (uint64_t i = 0; values != nullptr && i < size; ++i) {
    if (values[i] == nullptr) continue;
    if (Status status = check_alive(elements, call, "value[i]", values[i]); !status.ok()) {
      return status.null();
    }
  }
  return create(pool, call, values, size);
}

template <class T, class Element>
aclnnStatus destroy_list(HandlePool<T>& pool, HandlePool<Element>& elements, const char* call,
                         const T* list) {
  if (list == nullptr) return ACLNN_SUCCESS;
  const auto destroy_elements = [&](const T& own) {
    notify_ending(call, kKindOf<T>, &own);
    for (const Element* element : own) {
      if (element == nullptr) continue;
      elements.destroy(element,
                       [&](Element& last) { notify_ending(call, kKindOf<Element>, &last); });
    }
  };
  if (pool.destroy(list, destroy_elements)) return ACLNN_SUCCESS;
  return check_alive(pool, call, "array", list).code();
}

template <class T>
aclnnStatus size_of(HandlePool<T>& pool, const char* call, const T* array, uint64_t* size) {
  return get_property(pool, call, "array", array, "size", size, [](auto& a) { return a.size; });
}

}  // namespace
}  // namespace openaclnn

using namespace openaclnn;

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return create(int_arrays(), "aclCreateIntArray", value, size);
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return destroy_object(int_arrays(), "aclDestroyIntArray", "array", array);
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return size_of(int_arrays(), "aclGetIntArraySize", array, size);
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return create(float_arrays(), "aclCreateFloatArray", value, size);
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return destroy_object(float_arrays(), "aclDestroyFloatArray", "array", array);
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return size_of(float_arrays(), "aclGetFloatArraySize", array, size);
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return create(bool_arrays(), "aclCreateBoolArray", value, size);
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return destroy_object(bool_arrays(), "aclDestroyBoolArray", "array", array);
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return size_of(bool_arrays(), "aclGetBoolArraySize", array, size);
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return create_list(tensor_lists(), tensors(), "aclCreateTensorList", value, size);
}

aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return destroy_list(tensor_lists(), tensors(), "aclDestroyTensorList", array);
}

aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) {
  return size_of(tensor_lists(), "aclGetTensorListSize", tensorList, size);
}

aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return create_list(scalar_lists(), scalars(), "aclCreateScalarList", value, size);
}

aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return destroy_list(scalar_lists(), scalars(), "aclDestroyScalarList", array);
}

aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size) {
  return size_of(scalar_lists(), "aclGetScalarListSize", scalarList, size);
}
