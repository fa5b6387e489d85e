// SPDX-License-Identifier: Apache-2.0
// Arrays copy their numbers; lists own their objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/scalar.h"
#include "core/base/tensor.h"
#include "core/support/handles.h"

namespace openaclnn {

template <class T>
struct Array {
  using Element = T;

  const T* begin() const { return data.get(); }
  const T* end() const { return data.get() + size; }
  const T& operator[](size_t i) const { return data[i]; }

  std::unique_ptr<T[]> data;
  uint64_t size = 0;
};

}  // namespace openaclnn

struct aclIntArray : openaclnn::Array<int64_t> {};
struct aclFloatArray : openaclnn::Array<float> {};
struct aclBoolArray : openaclnn::Array<bool> {};

// An element may be NULL; all others were alive at creation.
struct aclTensorList : openaclnn::Array<const aclTensor*> {};
struct aclScalarList : openaclnn::Array<const aclScalar*> {};

namespace openaclnn {
HandlePool<aclIntArray>& int_arrays();
HandlePool<aclFloatArray>& float_arrays();
HandlePool<aclBoolArray>& bool_arrays();
HandlePool<aclTensorList>& tensor_lists();
HandlePool<aclScalarList>& scalar_lists();
}  // namespace openaclnn
