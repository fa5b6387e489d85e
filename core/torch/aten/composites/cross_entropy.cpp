// SPDX-License-Identifier: Apache-2.0
// Cross entropy of classes, and of a vocabulary that is divided among ranks: -log softmax at the
// target.
#include <ATen/core/Reduction.h>

#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

void cross_entropy(Tensor input, Tensor target, Tensor weight, Text reduction, int64_t ignored,
                   double smoothing, double, bool z_loss, Out loss, Out log_prob, Out z, Out lse) {
  require(!z_loss, "returnZloss must be false: the z-loss is not supported");
  const Tensor x = at_least_float(input);
  const Tensor w = weight.defined() ? weight.to(x.scalar_type()) : weight;
  loss = at::cross_entropy_loss(x, target.to(at::kLong), w, reduction_of(reduction), ignored,
                                smoothing);
  log_prob = at::log_softmax(x, -1);
  for (const Out& left : {z, lse})
    if (left.tensor().defined()) leave(left.tensor());
}

// dx = p sum(a) - a, where a is what each class has of the loss: (1 - smoothing) w[target] at the
// target and smoothing w / C everywhere.
void cross_entropy_grad(Tensor gradient, Tensor log_prob, Tensor target, Tensor weight, Tensor,
                        Tensor, Text reduction, int64_t ignored, double smoothing, double,
                        Out out) {
  const int64_t how = reduction_of(reduction), rows = log_prob.size(0), classes = log_prob.size(1);
  const int64_t expected = how == at::Reduction::None ? rows : 1;
  require_shape(gradient.numel() == expected, "gradLoss must have ", expected,
                expected == 1 ? " element" : " elements", " where reduction is ", reduction,
                ", but has shape ", gradient.sizes());
  const Tensor lp = at_least_float(log_prob), t = target.to(at::kLong), counts = t != ignored;
  const Tensor place = at::where(counts, t, at::zeros_like(t));
  const Tensor w =
      weight.defined() ? weight.to(lp.scalar_type()) : at::ones({classes}, lp.options());
  const Tensor of_target = w.index_select(0, place) * counts;
  Tensor share = at_least_float(gradient).reshape({expected, 1}) * counts.unsqueeze(1);
  if (how == at::Reduction::Mean) share = share / of_target.sum();
  const Tensor hard = share * (1 - smoothing) * of_target.unsqueeze(1);
  const Tensor soft = share * (smoothing / static_cast<double>(classes)) * w;
  out = (lp.exp() * (hard + soft.sum(-1, true)) - soft).scatter_add(1, place.unsqueeze(1), -hard);
}

// ---- a vocabulary in parts: logits = input weight^T ----

Tensor logits_of(const Tensor& input, const Tensor& weight) {
  return at::matmul(at_least_float(input), at_least_float(weight).t());
}

// The first of eight flags is the highest bit of a byte; the last byte ends with ones.
Tensor bits_of(const Tensor& flags) {
  const int64_t rest = (8 - flags.numel() % 8) % 8;
  const Tensor padded = at::constant_pad_nd(flags.to(at::kLong), {0, rest}, 1).reshape({-1, 8});
  return at::bitwise_left_shift(padded, at::arange(7, -1, -1, padded.options()))
      .sum(-1)
      .to(at::kByte);
}

Tensor flags_of(const Tensor& bits, int64_t count) {
  const Tensor wide = bits.to(at::kLong).reshape({-1, 1});
  const Tensor places = at::arange(7, -1, -1, wide.options());
  return at::bitwise_and(at::bitwise_right_shift(wide, places), 1).flatten().narrow(0, 0, count);
}

void check_target_mask(const Tensor& mask, int64_t count) {
  check_shape(mask, "targetMask", {(count + 7) / 8});
}

void check_no_smoothing(double smoothing) {
  require(smoothing == 0, "labelSmoothing must be 0, but got ", smoothing);
}

// Of the classes from `first` to `last`, both included. A target outside is masked.
void linear_online_max_sum(Tensor input, Tensor weight, Tensor target, int64_t first, int64_t last,
                           Out most, Out sum, Out predicted, Out mask, Out masked_target,
                           Out logits) {
  require(last - first < weight.size(0), "vocabEndIndex must be below vocabStartIndex + ",
          weight.size(0), ", the rows of weight, but they are ", last, " and ", first);
  check_target_mask(mask.tensor(), target.size(0));
  const Tensor z = logits_of(input, weight), top = z.amax(-1), shifted = z - top.unsqueeze(-1);
  const Tensor outside = at::bitwise_or(target<first, target> last);
  const Tensor place = (target - first).masked_fill(outside, 0);
  most = top;
  sum = shifted.exp().sum(-1);
  predicted =
      shifted.gather(1, place.to(at::kLong).unsqueeze(-1)).squeeze(-1).masked_fill(outside, 0);
  mask = bits_of(outside);
  masked_target = place;
  logits = z;
}

void cross_entropy_with_max_sum(Tensor most, Tensor sum, Tensor predicted, double smoothing, Tensor,
                                Tensor, Tensor logits, Out loss, Out softmax) {
  check_no_smoothing(smoothing);
  if (softmax.tensor().defined()) {
    check_given(logits, "vocabParallelLogits");
    softmax = (at_least_float(logits) - most.unsqueeze(-1)).exp() / sum.unsqueeze(-1);
  }
  loss = sum.log() - predicted;
}

void linear_cross_entropy_grad(Tensor gradient, Tensor input, Tensor weight, Tensor mask,
                               Tensor masked_target, double smoothing, Tensor most, Tensor sum,
                               Tensor softmax, Out input_gradient, Out weight_gradient) {
  check_no_smoothing(smoothing);
  const int64_t rows = gradient.size(0);
  check_target_mask(mask, rows);
  if (!softmax.defined()) {
    check_given(most, "logitsMax");
    check_given(sum, "sumExpLogits");
    softmax = (logits_of(input, weight) - most.unsqueeze(-1)).exp() / sum.unsqueeze(-1);
  }
  const Tensor inside = (flags_of(mask, rows) - 1).to(at::kFloat).unsqueeze(1);
  const Tensor d =
      softmax.to(at::kFloat).scatter_add(1, masked_target.to(at::kLong).unsqueeze(1), inside) *
      gradient.unsqueeze(-1);
  input_gradient = at::matmul(d, at_least_float(weight));
  weight_gradient = at::matmul(d.t(), at_least_float(input));
}

}  // namespace

const Composite cross_entropy_composites[] = {
    ENTRY(cross_entropy),
    ENTRY(cross_entropy_grad),
    ENTRY(linear_online_max_sum),
    ENTRY(cross_entropy_with_max_sum),
    ENTRY(linear_cross_entropy_grad),
    {},
};

}  // namespace openaclnn::aten
