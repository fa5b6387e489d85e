// SPDX-License-Identifier: Apache-2.0
// Element sizes and the scalar conversions of half floats in the C interface. They have neither
// infinities nor NaN: an exponent whose 5 bits are all 1 is an ordinary exponent (2^16), and values
// that are too large saturate. They use integers only, so a thread that flushes subnormals or
// rounds in another direction gets the same bits.
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
  } else {  // in units of 2^-24, that of subnormal halves; below 2^-25 it is 0
    const uint32_t shift = 126 - (magnitude >> 23);
    const uint32_t mantissa = (magnitude & 0x7FFFFF) | 0x800000;
    half = 0;
    if (shift <= 24) {
      const uint32_t odd = mantissa >> shift & 1;
      half = (mantissa + ((1u << (shift - 1)) - 1) + odd) >> shift;
    }
  }
  return static_cast<aclFloat16>(sign | half);
}

float aclFloat16ToFloat(aclFloat16 value) {
  constexpr uint32_t kRebias = (127 - 15) << 23;
  const uint32_t sign = (value & 0x8000u) << 16;
  const uint32_t magnitude = value & 0x7FFFu;
  if (magnitude >= 0x0400) return std::bit_cast<float>(sign | ((magnitude << 13) + kRebias));
  if (magnitude == 0) return std::bit_cast<float>(sign);
  const uint32_t places = std::countl_zero(magnitude) - 8;  // up to the leading 1 of a float
  const uint32_t exponent = 23 - places + 127 - 24;
  return std::bit_cast<float>(sign | ((magnitude << places) + ((exponent - 1) << 23)));
}
