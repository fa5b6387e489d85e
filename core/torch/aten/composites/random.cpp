// SPDX-License-Identifier: Apache-2.0
// Random numbers: aclnn passes a seed and an offset, so the same call gives the same numbers.
#include "core/torch/aten/composites/bits.h"
#include "core/torch/aten/composites/checks.h"
#include "core/torch/aten/composites/generator.h"

namespace openaclnn::aten {
namespace {

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

// self gives the shape only.
void bernoulli(Tensor self, Either p, int64_t seed, int64_t offset, Out out) {
  const Tensor drawn = at::empty(self.sizes(), self.options().dtype(at::kFloat));
  inplace_bernoulli(drawn, std::move(p), seed, offset);
  out = drawn.to(out.tensor().scalar_type());
}

// -ln(1 - u) / lambda, in the first `count` elements of self.
void exponential(Tensor self, int64_t count, double lambda, int64_t seed, int64_t offset) {
  require(count <= self.numel(), "count must be at most the elements of self, ", self.numel(),
          ", but is ", count);
  require(lambda > 0 && std::isfinite(lambda), "lambd must be above 0, but is ", lambda);
  require(self.is_floating_point(), "self must have floating-point numbers, but is ",
          self.scalar_type());
  const Tensor drawn = at::empty({count}, self.options().dtype(at::kFloat));
  drawn.exponential_(lambda, generator(seed, offset));
  if (count == self.numel()) {
    self.copy_(drawn.reshape(self.sizes()));
  } else {
    need_data(self);
    const Tensor all = self.flatten().clone();
    all.narrow(0, 0, count).copy_(drawn);
    self.copy_(all.reshape(self.sizes()));
  }
}

void normal(Either mean, Either std, int64_t seed, int64_t offset, Out out) {
  check_given(out.tensor(), "out");
  const Tensor drawn = at::empty(out.tensor().sizes(), out.tensor().options().dtype(at::kFloat));
  drawn.normal_(0, 1, generator(seed, offset));
  out = drawn * std.tensor() + mean.tensor();
}

void randperm(int64_t n, int64_t seed, int64_t offset, Out out) {
  require(n >= 0, "n must be at least 0, but got ", n);
  check_shape(out.tensor(), "out", {n});
  need_data(out.tensor());
  out = at::randperm(n, generator(seed, offset), out.tensor().options());
}

void multinomial(Tensor self, int64_t count, bool replacement, int64_t seed, int64_t offset,
                 Out out) {
  out = at::multinomial(self, count, replacement, generator(seed, offset));
}

// ---- dropout ----

void write_bits(const Ints& shape, double p, int64_t seed, int64_t offset, const Tensor& mask) {
  const int64_t count = count_of(shape, "shape");
  check_bits(mask, count);
  require(p >= 0 && p <= 1, "the probability must be in [0, 1], but got ", p);
  need_data(mask);
  pack_bits(at::empty({count}, at::kBool).bernoulli_(1 - p, generator(seed, offset)), mask);
}

Tensor dropped(const Tensor& x, const Tensor& bits, double p) {
  return p == 1 ? at::zeros_like(x) : x * bits * (1 / (1 - p));
}

void dropout_gen_mask(Ints shape, double p, int64_t seed, int64_t offset, int64_t, Tensor out) {
  write_bits(shape, p, seed, offset, out);
}

void dropout_do_mask(Tensor self, Tensor mask, double p, Out out) {
  out = dropped(self, unpack_bits(mask, self.sizes()), p);
}

// Kept elements are multiplied by 1 / (1 - p). Where nothing is drawn the mask stays as it is.
void dropout(Tensor x, double p, bool train, int64_t seed, int64_t offset, Out out, Tensor mask) {
  require(p >= 0 && p <= 1, "p must be in [0, 1], but got ", p);
  check_result(out.tensor(), x, "out");
  check_bits(mask, x.numel());
  if (!train || p == 0 || p == 1) leave(mask);
  if (!train || p == 0) {
    out = x;
  } else if (p == 1) {
    out = at::zeros_like(x);
  } else {
    write_bits(x.sizes().vec(), p, seed, offset, mask);
    out = dropped(x, unpack_bits(mask, x.sizes()), p);
  }
}

// Always writes the mask.
void dropout_v3(Tensor x, Tensor noise_shape, double p, int64_t seed, int64_t offset, Out out,
                Tensor mask) {
  require(!noise_shape.defined(), "optionalNoiseShape must be NULL");
  check_result(out.tensor(), x, "out");
  write_bits(x.sizes().vec(), p, seed, offset, mask);
  out = dropped(x, unpack_bits(mask, x.sizes()), p);
}

void dropout_backward(Tensor gradient, Tensor mask, double scale, Out out) {
  if (scale == 0) {
    out = at::zeros_like(gradient);
  } else if (scale == 1) {
    out = gradient;
  } else {
    out = gradient * unpack_bits(mask, gradient.sizes()) * scale;
  }
}

void dropout_gen_mask_v1(Ints shape, double p, int64_t seed, int64_t offset, Tensor out) {
  write_bits(shape, p, seed, offset, out);
}

void masked_scale(Tensor self, Tensor mask, double scale, Out out) {
  out = self.to(at::kFloat) * mask * scale;
}

// ---- RReLU: in training, x < 0 has a slope drawn from [lower, upper), which noise keeps ----

Tensor rrelu_of(const Tensor& x, const Tensor& noise, const at::Scalar& lower,
                const at::Scalar& upper, bool training, int64_t seed, int64_t offset) {
  if (!training) return at::leaky_relu(x, (lower.toDouble() + upper.toDouble()) / 2);
  const auto options = x.options().dtype(at::kFloat);
  const Tensor slope = at::empty(x.sizes(), options)
                           .uniform_(lower.toDouble(), upper.toDouble(), generator(seed, offset));
  const Tensor factor = at::where(x <= 0, slope, at::ones({}, options));
  put(noise, factor);
  return x.to(at::kFloat) * factor;
}

void rrelu(Tensor self, Tensor noise, at::Scalar lower, at::Scalar upper, bool training,
           int64_t seed, int64_t offset, Out out) {
  out = rrelu_of(self, noise, lower, upper, training, seed, offset);
}

void inplace_rrelu(Tensor self, Tensor noise, at::Scalar lower, at::Scalar upper, bool training,
                   int64_t seed, int64_t offset) {
  self.copy_(rrelu_of(self, noise, lower, upper, training, seed, offset));
}

// ---- the forms whose seed and offset are tensors: shift is added to the offset ----

void inplace_normal_by_tensor(Tensor self, double mean, double std, Tensor seed, Tensor offset,
                              int64_t shift) {
  inplace_normal(self, mean, std, number_in(seed), number_in(offset) + shift);
}

void inplace_uniform_by_tensor(Tensor self, double from, double to, Tensor seed, Tensor offset,
                               int64_t shift) {
  inplace_uniform(self, from, to, number_in(seed), number_in(offset) + shift);
}

void inplace_random_by_tensor(Tensor self, int64_t from, int64_t to, Tensor seed, Tensor offset,
                              int64_t shift) {
  inplace_random(self, from, to, number_in(seed), number_in(offset) + shift);
}

void inplace_random_whole(Tensor self, int64_t seed, int64_t offset) {
  self.random_(generator(seed, offset));
}

void inplace_random_whole_by_tensor(Tensor self, Tensor seed, Tensor offset, int64_t shift) {
  inplace_random_whole(self, number_in(seed), number_in(offset) + shift);
}

void multinomial_by_tensor(Tensor self, int64_t count, bool replacement, Tensor seed, Tensor offset,
                           int64_t shift, Out out) {
  multinomial(self, count, replacement, number_in(seed), number_in(offset) + shift, out);
}

void dropout_gen_mask_by_tensor(Ints shape, double p, Tensor seed, Tensor offset, int64_t shift,
                                int64_t, Tensor out) {
  dropout_gen_mask_v1(shape, p, number_in(seed), number_in(offset) + shift, out);
}

}  // namespace

const Composite random_composites[] = {
    ENTRY(inplace_normal),
    ENTRY(inplace_uniform),
    ENTRY(inplace_random),
    ENTRY(inplace_bernoulli),
    ENTRY(normal),
    ENTRY(bernoulli),
    ENTRY(exponential),
    ENTRY(dropout),
    ENTRY(dropout_v3),
    ENTRY(dropout_backward),
    ENTRY(randperm),
    ENTRY(multinomial),
    ENTRY(dropout_gen_mask),
    ENTRY(dropout_do_mask),
    ENTRY(dropout_gen_mask_v1),
    ENTRY(masked_scale),
    ENTRY(rrelu),
    ENTRY(inplace_rrelu),
    ENTRY(inplace_normal_by_tensor),
    ENTRY(inplace_uniform_by_tensor),
    ENTRY(inplace_random_by_tensor),
    ENTRY(inplace_random_whole),
    ENTRY(inplace_random_whole_by_tensor),
    ENTRY(multinomial_by_tensor),
    ENTRY(dropout_gen_mask_by_tensor),
    {},
};

}  // namespace openaclnn::aten
