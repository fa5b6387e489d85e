// SPDX-License-Identifier: Apache-2.0
// A tensor is its view: shape, strides and offset in elements over storage that starts at `data`.
#pragma once

#include <cstdint>
#include <string>

#include "acl/acl_base_rt.h"
#include "core/base/parameter.h"
#include "core/support/handles.h"
#include "core/support/status.h"

namespace openaclnn {

inline constexpr int kMaxDims = 25;  // what a descriptor can hold; operators accept kMaxRank

struct Dims {
  int rank = 0;
  int64_t at[kMaxDims];  // only the first `rank` are set, and copied

  Dims() = default;
  Dims(const Dims& other) { *this = other; }
  Dims& operator=(const Dims& other) {
    rank = other.rank;
    for (int i = 0; i < rank; ++i) at[i] = other.at[i];
    return *this;
  }
  int64_t& operator[](int i) { return at[i]; }
  int64_t operator[](int i) const { return at[i]; }
  bool operator==(const Dims& other) const;
};

std::string to_text(const Dims& dims);  // "[2, 3]"

struct Tensor {
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_ND;
  Dims shape;
  Dims strides;
  Dims storage;
  int64_t offset = 0;
  void* data = nullptr;
};

}  // namespace openaclnn

struct aclTensor : openaclnn::Tensor {
  aclTensor() = default;
  explicit aclTensor(const openaclnn::Tensor& tensor) : openaclnn::Tensor(tensor) {}

  static constexpr bool kPinned = true;  // while phase 1 reads it
};

namespace openaclnn {
HandlePool<aclTensor>& tensors();
}
