// SPDX-License-Identifier: Apache-2.0
// Element sizes and the scalar half float conversions of the C interface, which know no Inf and no
// NaN: 5 exponent bits of ones are an ordinary exponent (2^16), and what is too large saturates.
#include <bit>

#include "acl/acl_base_rt.h"

size_t aclDataTypeSize(aclDataType dataType) {
  switch (dataType) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0: return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16: return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32: return 4;
    case ACL_DOUBLE:
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_COMPLEX64: return 8;
    case ACL_COMPLEX128: return 16;
    default: return 0;
  }
}

aclFloat16 aclFloatToFloat16(float value) {
  constexpr uint32_t kRebias = (127 - 15) << 23;
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  const uint32_t sign = bits >> 16 & 0x8000;
  if (magnitude > 0x7F800000) return 0x7BFF;  // NaN, of either sign
  uint32_t half;
  if (magnitude >= std::bit_cast<uint32_t>(65504.0f)) {
    half = 0x7BFF;
  } else if (magnitude >= std::bit_cast<uint32_t>(0x1p-14f)) {
    half = (magnitude + 0x0FFF + (magnitude >> 13 & 1) - kRebias) >> 13;
  } else {  // a sum in [0.5, 1) is a multiple of 2^-24, the unit of subnormal halves
    const float sum = 0.5f + std::bit_cast<float>(magnitude);
    half = std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5f);
  }
  return static_cast<aclFloat16>(sign | half);
}

float aclFloat16ToFloat(aclFloat16 value) {
  constexpr uint32_t kRebias = (127 - 15) << 23;
  const uint32_t sign = (value & 0x8000u) << 16;
  const uint32_t magnitude = value & 0x7FFFu;
  const uint32_t bits = magnitude < 0x0400
                            ? std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f)
                            : (magnitude << 13) + kRebias;
  return std::bit_cast<float>(sign | bits);
}
