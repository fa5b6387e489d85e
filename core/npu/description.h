// SPDX-License-Identifier: Apache-2.0
// What operators of the older interface, aclop, are called with: descriptions of tensors, buffers
// and attributes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "acl/acl_base_rt.h"
#include "core/runtime/handles.h"

struct aclTensorDesc {
  aclDataType dtype;
  aclFormat format;
  std::vector<int64_t> dims;
  std::string name;
  aclFormat storage_format;
  std::vector<int64_t> storage_dims;
  aclMemType place = ACL_MEMTYPE_DEVICE;

  aclTensorDesc(aclDataType its_dtype, aclFormat its_format, const std::vector<int64_t>& its_dims)
      : dtype(its_dtype),
        format(its_format),
        dims(its_dims),
        storage_format(its_format),
        storage_dims(its_dims) {}
};

struct aclDataBuffer {
  void* data;
  size_t size;

  aclDataBuffer(void* its_data, size_t its_size) : data(its_data), size(its_size) {}
};

struct aclopAttr {
  std::string text;  // "axis=1, keep_dims=true"
};

namespace openaclnn::npu {
HandlePool<aclTensorDesc>& descriptions();
HandlePool<aclDataBuffer>& buffers();
HandlePool<aclopAttr>& attributes();
}  // namespace openaclnn::npu
