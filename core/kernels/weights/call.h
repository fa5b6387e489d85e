// SPDX-License-Identifier: Apache-2.0
// A run of a weight's numbers as fp32, which products convert in tiles.
#pragma once

#include <cstdint>

namespace openaclnn {

// int4: two numbers in a byte, the first in its low half.
enum class WeightElement : uint8_t { f16, bf16, int8, int4 };

struct WeightRun {
  const void* from;  // int4: of the even number 0
  int64_t count;     // int4: even
  WeightElement element;
  // out[i] = (from[i] + offset[i / group]) scale[i / group], each step rounded to fp32. Integers
  // only; offset may be nullptr.
  const float *scale, *offset;
  int64_t group;
};

struct WeightKernels {
  void (*widen)(const WeightRun& run, float* out);
};

}  // namespace openaclnn
