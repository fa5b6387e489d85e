// SPDX-License-Identifier: Apache-2.0
// Random numbers and dropout by type: shapes, probabilities and seeds are tensors.
#include "core/torch/aten/composites/bits.h"
#include "core/torch/aten/composites/checks.h"
#include "core/torch/aten/composites/generator.h"

namespace openaclnn::aten {
namespace {

// The elements that shape asks for are those of the output.
void check_drawn(const Tensor& shape, const Out& y) {
  check_shape(y.tensor(), "y", numbers_in(shape, "shape"));
}

double probability_in(const Tensor& tensor, const char* name) {
  const auto found = number_in<double>(tensor);
  require(found >= 0 && found <= 1, name, " must be in [0, 1], but is ", found);
  return found;
}

// ---- counters: key is the seed, the second number of counter the offset ----

at::Generator generator_of(const Tensor& key, const Tensor& counter) {
  const auto words = [](const Tensor& tensor, const char* name, int64_t count) {
    check_given(tensor, name);
    require_shape(tensor.numel() == count && tensor.element_size() == 8, name, " must have ", count,
                  " integers of 64 bits, but is ", tensor.scalar_type(), " with ", tensor.numel());
    need_data(tensor);
    return tensor.view(at::kLong);
  };
  const Tensor seed = words(key, "key", 1), place = words(counter, "counter", 2);
  return generator(number_in(seed) + number_in(place[0]), number_in(place[1]));
}

void stateless_normal(Tensor shape, Tensor key, Tensor counter, Tensor, Out y) {
  check_drawn(shape, y);
  y = at::empty_like(y.tensor()).normal_(0, 1, generator_of(key, counter));
}

void stateless_uniform(Tensor shape, Tensor key, Tensor counter, Tensor, Out y) {
  check_drawn(shape, y);
  y = at::empty_like(y.tensor()).uniform_(0, 1, generator_of(key, counter));
}

// ---- seed and offset ----

// prob is one probability, or one for each element.
void stateless_bernoulli(Tensor shape, Tensor prob, Tensor seed, Tensor offset, Out y) {
  check_drawn(shape, y);
  const at::Generator from = generator(number_in(seed), number_in(offset));
  const Tensor drawn = at::empty(y.tensor().sizes(), at::kFloat);
  if (prob.numel() == 1) {
    y = drawn.bernoulli_(probability_in(prob, "prob"), from);
  } else {
    check_shape(prob, "prob", y.tensor().sizes());
    y = drawn.bernoulli_(prob.to(at::kFloat), from);
  }
}

void stateless_permutation(Tensor n, Tensor seed, Tensor offset, Out y) {
  const int64_t count = number_in(n);
  check_shape(y.tensor(), "y", {count});
  y = at::randperm(count, generator(number_in(seed), number_in(offset)), at::kLong);
}

void multinomial_by_type(Tensor x, Tensor seed, Tensor offset, Out y, int64_t count,
                         bool replacement) {
  y = at::multinomial(at_least_float(x), count, replacement,
                      generator(number_in(seed), number_in(offset)));
}

// ---- dropout: prob is the share that is kept ----

// A bit for each element.
void stateless_dropout_bits(Tensor shape, Tensor prob, Tensor seed, Tensor, Tensor offset, Out y) {
  const int64_t count = count_of(numbers_in(shape, "shape"), "shape");
  check_bits(y.tensor(), count);
  need_data(y.tensor());
  const Ints places = offset.defined() ? numbers_in(offset, "offset") : Ints{};
  const at::Generator from = generator(number_in(seed), places.empty() ? 0 : places.back());
  pack_bits(at::empty({count}, at::kBool).bernoulli_(probability_in(prob, "prob"), from),
            y.tensor());
}

// A byte for each element, 1 where it is kept.
void dropout_gen_bytes(Tensor shape, Tensor prob, Out out, int64_t seed, int64_t seed2) {
  const double kept = probability_in(prob, "prob");
  const int64_t count = count_of(numbers_in(shape, "shape"), "shape");
  require_shape(count <= out.tensor().numel(), "y must have a byte for each of ", count,
                " elements, but has shape ", out.tensor().sizes());
  const Tensor bytes = at::zeros({out.tensor().numel()}, at::kByte);
  bytes.narrow(0, 0, count).bernoulli_(kept, generator(seed, seed2));
  out = bytes.reshape(out.tensor().sizes());
}

void dropout_do_mask_by_type(Tensor x, Tensor mask, Tensor keep_prob, Out y) {
  const double kept = probability_in(keep_prob, "keep_prob");
  y = kept == 0 ? at::zeros_like(x) : at_least_float(x) * unpack_bits(mask, x.sizes()) * (1 / kept);
}

}  // namespace

const Composite by_type_random_composites[] = {
    ENTRY(stateless_normal),      ENTRY(stateless_uniform),       ENTRY(stateless_bernoulli),
    ENTRY(stateless_permutation), ENTRY(multinomial_by_type),     ENTRY(stateless_dropout_bits),
    ENTRY(dropout_gen_bytes),     ENTRY(dropout_do_mask_by_type), {},
};

}  // namespace openaclnn::aten
