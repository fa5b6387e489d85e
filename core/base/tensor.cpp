// SPDX-License-Identifier: Apache-2.0
// Tensors of the C interface: what a descriptor may hold is checked here, once; whether an operator
// accepts it (rank, bounds, overlap, dtype) is a question for phase 1.
#include "core/base/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/dtype.h"
#include "core/base/object.h"
#include "core/base/view.h"
#include "core/support/api_guard.h"

namespace openaclnn {

bool Dims::operator==(const Dims& other) const {
  return rank == other.rank && std::equal(at, at + rank, other.at);
}

std::string to_text(const Dims& dims) {
  std::string text = "[";
  for (int i = 0; i < dims.rank; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(dims[i]);
  }
  return text + "]";
}

HandlePool<aclTensor>& tensors() {
  return pool_of<aclTensor>(1 << 20, [] { tensors().forget_pins(); });
}

namespace {

using ll = long long;

// Copies the dims of an argument; none may be negative.
Status copy_dims(const char* call, const char* argument, const int64_t* values, uint64_t count,
                 Dims* dims) {
  if (count > kMaxDims) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, call,
                "%sNum must be at most %d, but got %llu", argument, kMaxDims,
                static_cast<unsigned long long>(count));
  }
  if (values == nullptr && count > 0) return must_not_be_null(call, argument);
  dims->rank = static_cast<int>(count);
  for (int i = 0; i < dims->rank; ++i) {
    dims->at[i] = values[i];
    if (values[i] < 0) {
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, call,
                  "%s[%d] must not be negative, but got %lld", argument, i,
                  static_cast<ll>(values[i]));
    }
  }
  return {};
}

struct TensorArguments {
  const int64_t* view_dims;
  uint64_t view_rank;
  aclDataType dtype;
  const int64_t* strides;
  int64_t offset;
  aclFormat format;
  const int64_t* storage_dims;
  uint64_t storage_rank;
  void* data;
};

Status fill(const char* call, const TensorArguments& given, Tensor* tensor) {
  if (given.dtype == ACL_DT_UNDEFINED || std::strcmp(dtype_name(given.dtype), "UNKNOWN") == 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_dtype, call,
                "dataType must be an aclDataType, but got %d", static_cast<int>(given.dtype));
  }
  if (given.offset < 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, call,
                "offset must not be negative, but got %lld", static_cast<ll>(given.offset));
  }
  Status status = copy_dims(call, "viewDims", given.view_dims, given.view_rank, &tensor->shape);
  if (!status.ok()) return status;
  status = copy_dims(call, "storageDims", given.storage_dims, given.storage_rank, &tensor->storage);
  if (!status.ok()) return status;
  if (given.strides != nullptr) {
    status = copy_dims(call, "stride", given.strides, given.view_rank, &tensor->strides);
    if (!status.ok()) return status;
  } else {
    int64_t count;
    if (!element_count(tensor->shape, &count)) {
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, call,
                  "viewDims must have at most 2^62 elements, but got %s",
                  to_text(tensor->shape).c_str());
    }
    tensor->strides = contiguous_strides(tensor->shape);
  }
  tensor->dtype = given.dtype;
  tensor->format = given.format;
  tensor->offset = given.offset;
  tensor->data = given.data;
  return {};
}

Status describe(const char* call, const TensorArguments& given, Tensor* tensor) {
  return guarded(call, ACLNN_ERR_INNER, [&] { return fill(call, given, tensor); });
}

// The caller frees the copy with delete[].
aclnnStatus give_dims(const char* call, const aclTensor* tensor, Dims Tensor::* which,
                      int64_t** dims, uint64_t* count) {
  HandlePool<aclTensor>::Hold found;
  if (Status status = find_alive(tensors(), call, "tensor", tensor, &found); !status.ok()) {
    return status.code();
  }
  if (dims == nullptr) return must_not_be_null(call, "the result").code();
  if (count == nullptr) return must_not_be_null(call, "the number of dims").code();
  const Dims& own = (*found).*which;
  auto* copy = new (std::nothrow) int64_t[static_cast<size_t>(own.rank)];
  if (copy == nullptr)
    return fail(ACLNN_ERR_INNER, Reason::out_of_memory, call, "out of memory").code();
  std::copy_n(own.at, own.rank, copy);
  *dims = copy;
  *count = static_cast<uint64_t>(own.rank);
  return ACLNN_SUCCESS;
}

template <class Value, class Get>
aclnnStatus get_from(const char* call, const aclTensor* tensor, const char* result, Value* value,
                     Get get) {
  return get_property(tensors(), call, "tensor", tensor, result, value, get);
}

}  // namespace
}  // namespace openaclnn

using namespace openaclnn;

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  Tensor tensor;
  const Status status = describe("aclCreateTensor",
                                 {viewDims, viewDimsNum, dataType, stride, offset, format,
                                  storageDims, storageDimsNum, tensorData},
                                 &tensor);
  if (!status.ok()) return status.null();
  return create_object(tensors(), "aclCreateTensor", tensor);
}

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t* stride, int64_t offset,
                          aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                          void* tensorDataAddr) {
  Status status = check_alive(tensors(), "aclInitTensor", "tensor", tensor);
  if (!status.ok()) return status.code();
  Tensor fresh;
  status = describe("aclInitTensor",
                    {viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                     storageDimsNum, tensorDataAddr},
                    &fresh);
  if (status.ok()) static_cast<Tensor&>(*tensor) = fresh;
  return status.code();
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  return destroy_object(tensors(), "aclDestroyTensor", "tensor", tensor);
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  return give_dims("aclGetViewShape", tensor, &Tensor::shape, viewDims, viewDimsNum);
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                               uint64_t* storageDimsNum) {
  return give_dims("aclGetStorageShape", tensor, &Tensor::storage, storageDims, storageDimsNum);
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                              uint64_t* stridesNum) {
  return give_dims("aclGetViewStrides", tensor, &Tensor::strides, stridesValue, stridesNum);
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return get_from("aclGetViewOffset", tensor, "offset", offset, [](auto& t) { return t.offset; });
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return get_from("aclGetFormat", tensor, "format", format, [](auto& t) { return t.format; });
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return get_from("aclGetDataType", tensor, "dataType", dataType, [](auto& t) { return t.dtype; });
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  return get_from("aclGetRawTensorAddr", tensor, "addr", addr, [](auto& t) { return t.data; });
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  const Status status = check_alive(tensors(), "aclSetRawTensorAddr", "tensor", tensor);
  if (status.ok()) tensor->data = addr;
  return status.code();
}
