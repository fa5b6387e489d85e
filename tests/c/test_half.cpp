// SPDX-License-Identifier: Apache-2.0
// Half floats: every pattern and its round trip, the rounding between neighbours, and saturation.
#include <cmath>
#include <limits>

#include "check.h"

namespace {

// The definition, by arithmetic: sign, exponent, mantissa; no pattern is special.
double value_of(unsigned pattern) {
  const int exponent = pattern >> 10 & 31;
  const int mantissa = pattern & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return pattern & 0x8000 ? -magnitude : magnitude;
}

void every_pattern() {
  for (unsigned p = 0; p < 0x10000; ++p) {
    const auto pattern = static_cast<aclFloat16>(p);
    const float value = aclFloat16ToFloat(pattern);
    CHECK_EQ(value, value_of(p));
    CHECK_EQ(std::signbit(value), (p & 0x8000) != 0);
    const unsigned back = (p & 0x7C00) == 0x7C00 ? (p & 0x8000) | 0x7BFF : p;
    CHECK_EQ(aclFloatToFloat16(value), back);
  }
  CHECK_EQ(aclFloat16ToFloat(0x7C00), 65536.0f);
  CHECK_EQ(aclFloat16ToFloat(0xFC00), -65536.0f);
  CHECK_EQ(aclFloat16ToFloat(0x7E00), 98304.0f);
}

// Between neighbours p and p + 1 the midpoint goes to the even one, everything else to the nearer.
void rounding() {
  for (unsigned p = 0; p < 0x7BFF; ++p) {
    const auto middle = static_cast<float>((value_of(p) + value_of(p + 1)) / 2);
    const float below = std::nextafter(middle, 0.0f);
    const float above = std::nextafter(middle, 1e9f);
    const unsigned even = p % 2 == 0 ? p : p + 1;
    for (unsigned sign : {0u, 0x8000u}) {
      const float factor = sign == 0 ? 1.0f : -1.0f;
      CHECK_EQ(aclFloatToFloat16(factor * below), sign | p);
      CHECK_EQ(aclFloatToFloat16(factor * middle), sign | even);
      CHECK_EQ(aclFloatToFloat16(factor * above), sign | (p + 1));
    }
  }
}

void saturation() {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (float large : {65504.0f, 65519.0f, 65520.0f, 65536.0f, 1e30f, kInf}) {
    CHECK_EQ(aclFloatToFloat16(large), 0x7BFF);
    CHECK_EQ(aclFloatToFloat16(-large), 0xFBFF);
  }
  CHECK_EQ(aclFloatToFloat16(kNaN), 0x7BFF);
  CHECK_EQ(aclFloatToFloat16(-kNaN), 0x7BFF);
  CHECK_EQ(aclFloatToFloat16(std::numeric_limits<float>::denorm_min()), 0);
  CHECK_EQ(aclFloatToFloat16(-0.0f), 0x8000);
}

void sizes() {
  for (aclDataType one : {ACL_INT8, ACL_UINT8, ACL_BOOL, ACL_HIFLOAT8, ACL_FLOAT8_E5M2,
                          ACL_FLOAT8_E4M3FN, ACL_FLOAT8_E8M0}) {
    CHECK_EQ(aclDataTypeSize(one), 1u);
  }
  for (aclDataType two : {ACL_FLOAT16, ACL_BF16, ACL_INT16, ACL_UINT16}) {
    CHECK_EQ(aclDataTypeSize(two), 2u);
  }
  for (aclDataType four : {ACL_FLOAT, ACL_INT32, ACL_UINT32, ACL_COMPLEX32}) {
    CHECK_EQ(aclDataTypeSize(four), 4u);
  }
  for (aclDataType eight : {ACL_DOUBLE, ACL_INT64, ACL_UINT64, ACL_COMPLEX64}) {
    CHECK_EQ(aclDataTypeSize(eight), 8u);
  }
  CHECK_EQ(aclDataTypeSize(ACL_COMPLEX128), 16u);
  for (aclDataType none :
       {ACL_DT_UNDEFINED, ACL_STRING, ACL_INT4, ACL_UINT1, ACL_FLOAT6_E3M2, ACL_FLOAT6_E2M3,
        ACL_FLOAT4_E2M1, ACL_FLOAT4_E1M2, static_cast<aclDataType>(5)}) {
    CHECK_EQ(aclDataTypeSize(none), 0u);
  }
}

}  // namespace

int main() {
  every_pattern();
  rounding();
  saturation();
  sizes();
  return check_result();
}
