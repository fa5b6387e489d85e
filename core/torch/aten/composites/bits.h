// SPDX-License-Identifier: Apache-2.0
// Masks of dropout have a bit for each element: bit i % 8 of byte i / 8 is set where element i is
// kept.
#pragma once

#include <sstream>

#include "core/torch/aten/composites/entry.h"

namespace openaclnn::aten {

inline void check_bits(const Tensor& mask, int64_t count) {
  const bool enough = mask.defined() && mask.numel() >= (count + 7) / 8;
  if (enough && mask.scalar_type() == at::kByte) return;
  std::ostringstream sentence;
  sentence << "the mask must be UINT8 with at least " << (count + 7) / 8
           << " elements, a bit for each of " << count << " elements, but ";
  if (mask.defined())
    sentence << "got " << mask.scalar_type() << " with " << mask.numel() << " elements";
  else
    sentence << "is NULL";
  throw Refusal(sentence.str());
}

inline void pack_bits(const Tensor& kept, const Tensor& mask) {
  check_bits(mask, kept.numel());
  need_data(kept);
  need_data(mask);
  const Tensor packed = at::zeros(mask.sizes(), at::kByte);
  auto* bytes = data_of<uint8_t>(packed);
  const auto* bit = data_of<bool>(kept);
  for (int64_t i = 0; i < kept.numel(); ++i) {
    if (bit[i]) bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | 1 << i % 8);
  }
  mask.copy_(packed);
}

inline Tensor unpack_bits(const Tensor& mask, at::IntArrayRef shape) {
  check_bits(mask, c10::multiply_integers(shape));
  const Tensor kept = at::empty(shape, mask.options().dtype(at::kBool));
  if (mask.is_meta()) return kept;
  const Tensor dense = mask.contiguous();
  const auto* bytes = data_of<uint8_t>(dense);
  auto* bit = data_of<bool>(kept);
  for (int64_t i = 0; i < kept.numel(); ++i) bit[i] = (bytes[i / 8] >> i % 8 & 1) != 0;
  return kept;
}

}  // namespace openaclnn::aten
