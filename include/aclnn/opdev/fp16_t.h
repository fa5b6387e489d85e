// SPDX-License-Identifier: Apache-2.0
// A number of 16 bits for C++ programs (IEEE 754 binary16): rounds to nearest even, and overflows
// to infinity.
#ifndef OPENACLNN_ACLNN_OPDEV_FP16_T_H
#define OPENACLNN_ACLNN_OPDEV_FP16_T_H

#include <stdint.h>

#ifdef __cplusplus

#include <cstring>

namespace op {

struct fp16_t {
  uint16_t val;

  fp16_t() : val(0) {}
  fp16_t(float value) : val(from_float(value)) {}
  fp16_t(double value) : val(from_float(static_cast<float>(value))) {}
  fp16_t(int value) : val(from_float(static_cast<float>(value))) {}
  fp16_t& operator=(float value) {
    val = from_float(value);
    return *this;
  }

  static fp16_t from_bits(uint16_t bits) {
    fp16_t made;
    made.val = bits;
    return made;
  }

  operator float() const { return toFloat(); }
  float toFloat() const {
    const uint32_t sign = (val & 0x8000u) << 16, exponent = val >> 10 & 31u, part = val & 1023u;
    if (exponent == 31) return as_float(sign | 0x7f800000u | part << 13);
    if (exponent > 0) return as_float(sign | (exponent + 112) << 23 | part << 13);
    const float small = static_cast<float>(part) * 5.9604644775390625e-8f;  // 2^-24, exact
    return sign == 0 ? small : -small;
  }

 private:
  static float as_float(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  static uint16_t from_float(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // from 65520 on
    if (magnitude < 0x38800000u) {  // below 2^-14: the sum is rounded to a multiple of 2^-24
      const float sum = as_float(magnitude) + 0.5f;
      uint32_t rounded;
      std::memcpy(&rounded, &sum, sizeof rounded);
      return static_cast<uint16_t>(sign | (rounded - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return static_cast<uint16_t>(sign | (rounded - 0x38000000u) >> 13);
  }
};

inline fp16_t operator+(fp16_t a, fp16_t b) { return fp16_t(a.toFloat() + b.toFloat()); }
inline fp16_t operator-(fp16_t a, fp16_t b) { return fp16_t(a.toFloat() - b.toFloat()); }
inline fp16_t operator*(fp16_t a, fp16_t b) { return fp16_t(a.toFloat() * b.toFloat()); }
inline fp16_t operator/(fp16_t a, fp16_t b) { return fp16_t(a.toFloat() / b.toFloat()); }
inline bool operator==(fp16_t a, fp16_t b) { return a.toFloat() == b.toFloat(); }
inline bool operator!=(fp16_t a, fp16_t b) { return a.toFloat() != b.toFloat(); }
inline bool operator<(fp16_t a, fp16_t b) { return a.toFloat() < b.toFloat(); }
inline bool operator>(fp16_t a, fp16_t b) { return a.toFloat() > b.toFloat(); }

}  // namespace op

#endif

#endif
