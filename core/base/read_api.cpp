// SPDX-License-Identifier: Apache-2.0
// What kernel libraries read of tensors, scalars, arrays and lists.
#include <algorithm>

#include "aclnn/openaclnn_read.h"
#include "core/base/dtype.h"
#include "core/base/list.h"
#include "core/base/object.h"
#include "core/base/scalar.h"
#include "core/base/tensor.h"

namespace openaclnn {
namespace {

static_assert(kMaxDims == OPENACLNN_MAX_DIMS);

template <class T>
aclnnStatus read_array(HandlePool<T>& pool, const char* call, const char* argument, const T* array,
                       const typename T::Element** values, uint64_t* size) {
  typename HandlePool<T>::Hold found;
  if (Status status = find_alive(pool, call, argument, array, &found); !status.ok())
    return status.code();
  if (values == nullptr) return must_not_be_null(call, "values").code();
  if (size == nullptr) return must_not_be_null(call, "size").code();
  *values = found->begin();
  *size = found->size;
  return ACLNN_SUCCESS;
}

}  // namespace
}  // namespace openaclnn

using namespace openaclnn;

aclnnStatus openaclnnReadTensor(const aclTensor* tensor, openaclnnTensorView* view) {
  const char* call = "openaclnnReadTensor";
  HandlePool<aclTensor>::Hold own;
  if (Status status = find_alive(tensors(), call, "tensor", tensor, &own); !status.ok()) {
    return status.code();
  }
  if (view == nullptr) return must_not_be_null(call, "view").code();
  const size_t size = dtype_size(own->dtype);
  if (size == 0 && own->offset != 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, call,
                "tensor of %s must have offset 0: its elements have no whole bytes",
                dtype_name(own->dtype))
        .code();
  }
  view->dataType = own->dtype;
  view->elementSize = size;
  view->rank = static_cast<uint64_t>(own->shape.rank);
  std::copy_n(own->shape.at, own->shape.rank, view->shape);
  std::copy_n(own->strides.at, own->shape.rank, view->strides);
  const auto base = reinterpret_cast<uintptr_t>(own->data);
  const auto skipped = static_cast<uintptr_t>(own->offset) * size;
  view->data = base == 0 ? nullptr : reinterpret_cast<void*>(base + skipped);
  return ACLNN_SUCCESS;
}

aclnnStatus openaclnnReadScalar(const aclScalar* scalar, double* value) {
  const char* call = "openaclnnReadScalar";
  HandlePool<aclScalar>::Hold own;
  if (Status status = find_alive(scalars(), call, "scalar", scalar, &own); !status.ok()) {
    return status.code();
  }
  if (value == nullptr) return must_not_be_null(call, "value").code();
  if (scalar_value(*own, value)) return ACLNN_SUCCESS;
  return fail(ACLNN_ERR_PARAM_INVALID, {Reason::wrong_dtype, ObjectKind::scalar}, call,
              "scalar must be a real number, but is %s", dtype_name(own->dtype))
      .code();
}

aclnnStatus openaclnnReadIntArray(const aclIntArray* array, const int64_t** values,
                                  uint64_t* size) {
  return read_array(int_arrays(), "openaclnnReadIntArray", "array", array, values, size);
}

aclnnStatus openaclnnReadFloatArray(const aclFloatArray* array, const float** values,
                                    uint64_t* size) {
  return read_array(float_arrays(), "openaclnnReadFloatArray", "array", array, values, size);
}

aclnnStatus openaclnnReadBoolArray(const aclBoolArray* array, const bool** values, uint64_t* size) {
  return read_array(bool_arrays(), "openaclnnReadBoolArray", "array", array, values, size);
}

aclnnStatus openaclnnReadTensorList(const aclTensorList* list, const aclTensor* const** values,
                                    uint64_t* size) {
  return read_array(tensor_lists(), "openaclnnReadTensorList", "list", list, values, size);
}

aclnnStatus openaclnnReadScalarList(const aclScalarList* list, const aclScalar* const** values,
                                    uint64_t* size) {
  return read_array(scalar_lists(), "openaclnnReadScalarList", "list", list, values, size);
}

aclnnStatus openaclnnRefuse(const char* function, aclnnStatus status, const char* sentence) {
  const char* call = "openaclnnRefuse";
  if (function == nullptr) return must_not_be_null(call, "function").code();
  if (sentence == nullptr) return must_not_be_null(call, "sentence").code();
  if (status == ACLNN_SUCCESS) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, call,
                "status must not be 0; pass 161002 for a wrong argument")
        .code();
  }
  return fail(status, Reason::wrong_value, function, "%s", sentence).code();
}
