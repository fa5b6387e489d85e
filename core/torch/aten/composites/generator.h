// SPDX-License-Identifier: Apache-2.0
// Random numbers from a seed and an offset: the same pair gives the same numbers. They are those of
// torch's CPU generator, not those of a device.
#pragma once

#include <ATen/CPUGeneratorImpl.h>

namespace openaclnn::aten {

// One stream of numbers for each pair: the multipliers are those of two 64-bit linear congruential
// generators (Knuth's MMIX).
inline at::Generator generator(int64_t seed, int64_t offset) {
  const uint64_t mixed = static_cast<uint64_t>(seed) * 6364136223846793005u +
                         static_cast<uint64_t>(offset) * 1442695040888963407u + 1;
  return at::make_generator<at::CPUGeneratorImpl>(mixed);
}

}  // namespace openaclnn::aten
