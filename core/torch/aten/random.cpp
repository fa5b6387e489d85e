// SPDX-License-Identifier: Apache-2.0
// Random numbers: aclnn passes a seed and an offset, so the same call gives the same numbers. They
// are those of torch's CPU generator, not those of a device.
#include <ATen/CPUGeneratorImpl.h>

#include "core/torch/aten/composite.h"

namespace openaclnn::aten {
namespace {

// One stream of numbers for each pair: the multipliers are those of two 64-bit linear congruential
// generators (Knuth's MMIX).
at::Generator generator(int64_t seed, int64_t offset) {
  const uint64_t mixed = static_cast<uint64_t>(seed) * 6364136223846793005u +
                         static_cast<uint64_t>(offset) * 1442695040888963407u + 1;
  return at::make_generator<at::CPUGeneratorImpl>(mixed);
}

void inplace_normal(Tensor self, double mean, double std, int64_t seed, int64_t offset) {
  self.normal_(mean, std, generator(seed, offset));
}

void inplace_uniform(Tensor self, double from, double to, int64_t seed, int64_t offset) {
  self.uniform_(from, to, generator(seed, offset));
}

void inplace_random(Tensor self, int64_t from, int64_t to, int64_t seed, int64_t offset) {
  self.random_(from, to, generator(seed, offset));
}

void inplace_bernoulli(Tensor self, Either p, int64_t seed, int64_t offset) {
  if (p.is_tensor())
    self.bernoulli_(p.tensor(), generator(seed, offset));
  else
    self.bernoulli_(p.number().toDouble(), generator(seed, offset));
}

void normal(Either mean, Either std, int64_t seed, int64_t offset, Out out) {
  const Tensor drawn = at::empty(out.tensor().sizes(), at::kFloat);
  drawn.normal_(0, 1, generator(seed, offset));
  out = drawn * std.tensor() + mean.tensor();
}

void randperm(int64_t n, int64_t seed, int64_t offset, Out out) {
  out = at::randperm(n, generator(seed, offset), out.tensor().options());
}

void multinomial(Tensor self, int64_t count, bool replacement, int64_t seed, int64_t offset,
                 Out out) {
  out = at::multinomial(self, count, replacement, generator(seed, offset));
}

// ---- dropout: element i is kept where bit i % 8 of byte i / 8 is set ----

Tensor drawn_bits(int64_t count, double p, int64_t seed, int64_t offset) {
  return at::empty({count}, at::kBool).bernoulli_(1 - p, generator(seed, offset));
}

void pack(const Tensor& bits, const Tensor& mask) {
  mask.zero_();
  auto* bytes = mask.data_ptr<uint8_t>();
  const bool* bit = bits.data_ptr<bool>();
  for (int64_t i = 0; i < bits.numel(); ++i) {
    if (bit[i]) bytes[i / 8] = static_cast<uint8_t>(bytes[i / 8] | 1 << i % 8);
  }
}

Tensor unpack(const Tensor& mask, at::IntArrayRef shape) {
  const Tensor bits = at::empty(shape, at::kBool);
  const auto* bytes = mask.data_ptr<uint8_t>();
  bool* bit = bits.data_ptr<bool>();
  for (int64_t i = 0; i < bits.numel(); ++i) bit[i] = (bytes[i / 8] >> i % 8 & 1) != 0;
  return bits;
}

Tensor dropped(const Tensor& x, const Tensor& bits, double p) {
  return p == 1 ? at::zeros_like(x) : x * bits * (1 / (1 - p));
}

void dropout_gen_mask(Ints shape, double p, int64_t seed, int64_t offset, int64_t, Tensor out) {
  pack(drawn_bits(c10::multiply_integers(shape), p, seed, offset), out);
}

void dropout_do_mask(Tensor self, Tensor mask, double p, Out out) {
  out = dropped(self, unpack(mask, self.sizes()), p);
}

}  // namespace

const Composite random_composites[] = {
    ENTRY(inplace_normal),
    ENTRY(inplace_uniform),
    ENTRY(inplace_random),
    ENTRY(inplace_bernoulli),
    ENTRY(normal),
    ENTRY(randperm),
    ENTRY(multinomial),
    ENTRY(dropout_gen_mask),
    ENTRY(dropout_do_mask),

    {},
};

}  // namespace openaclnn::aten
