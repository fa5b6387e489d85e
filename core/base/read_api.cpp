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
aclnnStatus read_array(const HandlePool<T>& pool, const char* call, const char* argument,
                       const T* array, const typename T::Element** values, uint64_t* size) {
  if (Status status = check_alive(pool, call, argument, array); !status.ok()) return status.code();
  if (values == nullptr) return must_not_be_null(call, "values").code();
  if (size == nullptr) return must_not_be_null(call, "size").code();
  *values = array->begin();
  *size = array->size;
  return ACLNN_SUCCESS;
}

}  // namespace
}  // namespace openaclnn

using namespace openaclnn;

aclnnStatus openaclnnReadTensor(const aclTensor* tensor, openaclnnTensorView* view) {
  const char* call = "openaclnnReadTensor";
  if (Status status = check_alive(tensors(), call, "tensor", tensor); !status.ok()) {
    return status.code();
  }
  if (view == nullptr) return must_not_be_null(call, "view").code();
  const size_t size = dtype_size(tensor->dtype);
  if (size == 0 && tensor->offset != 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, call,
                "tensor of %s must have offset 0: its elements have no whole bytes",
                dtype_name(tensor->dtype))
        .code();
  }
  view->dataType = tensor->dtype;
  view->elementSize = size;
  view->rank = static_cast<uint64_t>(tensor->shape.rank);
  std::copy_n(tensor->shape.at, tensor->shape.rank, view->shape);
  std::copy_n(tensor->strides.at, tensor->shape.rank, view->strides);
  const auto base = reinterpret_cast<uintptr_t>(tensor->data);
  const auto skipped = static_cast<uintptr_t>(tensor->offset) * size;
  view->data = base == 0 ? nullptr : reinterpret_cast<void*>(base + skipped);
  return ACLNN_SUCCESS;
}

aclnnStatus openaclnnReadScalar(const aclScalar* scalar, double* value) {
  const char* call = "openaclnnReadScalar";
  if (Status status = check_alive(scalars(), call, "scalar", scalar); !status.ok()) {
    return status.code();
  }
  if (value == nullptr) return must_not_be_null(call, "value").code();
  if (scalar_value(*scalar, value)) return ACLNN_SUCCESS;
  return fail(ACLNN_ERR_PARAM_INVALID, {Reason::wrong_dtype, ObjectKind::scalar}, call,
              "scalar must be a real number, but is %s", dtype_name(scalar->dtype))
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
