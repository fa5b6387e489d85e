// SPDX-License-Identifier: Apache-2.0
// aclDataType and the dtypes of torch.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "acl/acl_base_rt.h"

namespace openaclnn {

// INT4 is packed in pairs; no ATen operator reads it.
inline constexpr std::pair<aclDataType, at::ScalarType> kDtypes[] = {
    {ACL_FLOAT, at::kFloat},
    {ACL_FLOAT16, at::kHalf},
    {ACL_BF16, at::kBFloat16},
    {ACL_DOUBLE, at::kDouble},
    {ACL_INT4, at::ScalarType::Int4},
    {ACL_INT8, at::kChar},
    {ACL_INT16, at::kShort},
    {ACL_INT32, at::kInt},
    {ACL_INT64, at::kLong},
    {ACL_UINT8, at::kByte},
    {ACL_UINT16, at::kUInt16},
    {ACL_UINT32, at::kUInt32},
    {ACL_UINT64, at::kUInt64},
    {ACL_BOOL, at::kBool},
    {ACL_COMPLEX32, at::kComplexHalf},
    {ACL_COMPLEX64, at::kComplexFloat},
    {ACL_COMPLEX128, at::kComplexDouble},
    {ACL_FLOAT8_E5M2, at::kFloat8_e5m2},
    {ACL_FLOAT8_E4M3FN, at::kFloat8_e4m3fn},
};

constexpr std::optional<at::ScalarType> scalar_type_of(int64_t acl_dtype) {
  for (const auto& [acl, torch] : kDtypes) {
    if (acl == acl_dtype) return torch;
  }
  return {};
}

// ACL_DT_UNDEFINED if it has none.
constexpr aclDataType acl_dtype(at::ScalarType dtype) {
  for (const auto& [acl, torch] : kDtypes) {
    if (torch == dtype) return acl;
  }
  return ACL_DT_UNDEFINED;
}

}  // namespace openaclnn
