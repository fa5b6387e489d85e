// SPDX-License-Identifier: Apache-2.0
// Losses and gradients without an ATen operator, or for which ATen keeps other tensors for the
// backward pass.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

enum Reduction : int64_t { none, mean, sum, batch_mean };

Tensor reduced(const Tensor& gradient, const Tensor& of, int64_t reduction) {
  if (reduction == batch_mean && of.dim() > 0) return gradient / of.size(0);
  return reduction == mean ? gradient / of.numel() : gradient;
}

// ATen's kernel trusts that the gradient broadcasts to self.
void bce_backward(Tensor gradient, Tensor self, Tensor target, Tensor weight, int64_t reduction,
                  Out out) {
  out =
      at::binary_cross_entropy_backward(gradient.expand_as(self), self, target, weight, reduction);
}

void l1_loss_backward(Tensor gradient, Tensor self, Tensor target, int64_t reduction, Out out) {
  const Tensor difference = self - target;
  out =
      reduced(gradient * at::sign(difference), difference, reduction).expand(out.tensor().sizes());
}

// What is summed over broadcast dims, or is the same along them, in the shape of out. The mean is
// that of the loss, to which both are broadcast.
Tensor kl_gradient(const Tensor& made, const Tensor& self, const Tensor& target, int64_t reduction,
                   const Out& out) {
  const auto whole = at::infer_size(self.sizes(), target.sizes());
  const Tensor loss = made.expand(whole);
  return reduced(loss, loss, reduction).sum_to_size(out.tensor().sizes());
}

// As ATen's kl_div: t ln t - t x, NaN where t < 0; the gradient by x is -t everywhere.
void kl_div_backward(Tensor gradient, Tensor self, Tensor target, int64_t reduction,
                     bool log_target, Out out) {
  const Tensor made = gradient * -(log_target ? at::exp(target) : target);
  out = kl_gradient(made, self, target, reduction, out);
}

// By t: ln t + 1 - x, NaN where t <= 0; with t = exp(u), by u: e^u (u + 1 - x).
void kl_div_target_backward(Tensor gradient, Tensor self, Tensor target, int64_t reduction,
                            bool log_target, Out out) {
  const Tensor by_t = log_target ? at::exp(target) * (target + 1 - self)
                                 : at::where(target > 0, at::log(target), NAN) + 1 - self;
  out = kl_gradient(by_t * gradient, self, target, reduction, out);
}

// x: the logits; weight w; positive weight q: ((q t + 1 - t) sigmoid(x) - q t) w.
void bce_with_logits_backward(Tensor gradient, Tensor x, Tensor target, Tensor weight,
                              Tensor positive, int64_t reduction, Out out) {
  Tensor made;
  if (positive.defined()) {
    const Tensor q = positive * target;
    made = (q + 1 - target) * at::sigmoid(x) - q;
  } else {
    made = at::sigmoid(x) - target;
  }
  made = made * gradient;
  if (weight.defined()) made = made * weight;
  out = reduced(made, x, reduction);
}

// CANN keeps nothing for the backward pass: its buffer is empty.
void log_sigmoid_forward(Tensor self, Out out, Tensor) { out = at::log_sigmoid(self); }

void log_sigmoid_backward(Tensor gradient, Tensor self, Tensor, Out out) {
  out = gradient * at::sigmoid(-self);
}

// ---- classes as targets: INT32 too ----

Tensor classes(const Tensor& target) {
  return target.scalar_type() == at::kInt ? target.to(at::kLong) : target;
}

void nll_loss(Tensor self, Tensor target, Tensor weight, int64_t reduction, int64_t ignored,
              Out out, Out total) {
  const auto [loss, weights] =
      at::nll_loss_forward(self, classes(target), weight, reduction, ignored);
  out = loss;
  total = weights;
}

void nll_loss_backward(Tensor gradient, Tensor self, Tensor target, Tensor weight,
                       int64_t reduction, int64_t ignored, Tensor total, Out out) {
  out = at::nll_loss_backward(gradient, self, classes(target), weight, reduction, ignored, total);
}

void nll_loss2d(Tensor self, Tensor target, Tensor weight, int64_t reduction, int64_t ignored,
                Out out, Out total) {
  const auto [loss, weights] =
      at::nll_loss2d_forward(self, classes(target), weight, reduction, ignored);
  out = loss;
  total = weights;
}

void nll_loss2d_backward(Tensor gradient, Tensor self, Tensor target, Tensor weight,
                         int64_t reduction, int64_t ignored, Tensor total, Out out) {
  out = at::nll_loss2d_backward(gradient, self, classes(target), weight, reduction, ignored, total);
}

void multilabel_margin_loss(Tensor self, Tensor target, int64_t reduction, Out out, Out is_target) {
  const auto [loss, places] =
      at::multilabel_margin_loss_forward(at_least_float(self), classes(target), reduction);
  out = loss;
  is_target = places;
}

// ATen's backward kernel trusts what its forward kernel has checked.
void check_ctc(const Tensor& log_probs, const Tensor& targets, const Ints& input_lengths,
               const Ints& target_lengths, int64_t blank) {
  const int64_t classes = log_probs.size(-1), time = log_probs.size(0);
  if (blank < 0 || blank >= classes)
    throw Refusal(c10::str("blank must be a class, from 0 to ", classes - 1, ", but got ", blank));
  for (const int64_t length : input_lengths) {
    if (length > time)
      throw Refusal(c10::str("inputLengths must be at most ", time, ", but has ", length));
  }
  int64_t sum = 0, longest = 0;
  for (const int64_t length : target_lengths) {
    if (__builtin_add_overflow(sum, length, &sum)) sum = INT64_MAX;
    longest = std::max(longest, length);
  }
  if (targets.dim() == 1) {
    require(targets.size(0) >= sum, "targets must have ", sum,
            " elements, the sum of targetLengths, but has ", targets.size(0));
    return;
  }
  const auto batch = static_cast<int64_t>(target_lengths.size());
  require(targets.dim() == 2 && targets.size(0) == batch && targets.size(1) >= longest,
          "targets must have shape [", batch, ", ", longest,
          "] or more columns, as targetLengths says, but got ", targets.sizes());
}

// Classes behind the end of a target are padding and are not read.
void check_classes(const Tensor& targets, const Ints& lengths, int64_t classes) {
  int64_t begin = 0;
  for (size_t n = 0; n < lengths.size(); begin += lengths[n++]) {
    const Tensor own = targets.dim() == 1
                           ? targets.narrow(0, begin, lengths[n])
                           : targets[static_cast<int64_t>(n)].narrow(0, 0, lengths[n]);
    need_data(own);
    if (own.numel() == 0) continue;
    const auto [least, most] = at::aminmax(own);
    require(least.item().toLong() >= 0 && most.item().toLong() < classes,
            "targets must be classes from 0 to ", classes - 1, ", but has ",
            (least.item().toLong() < 0 ? least : most).item().toLong());
  }
}

// CANN's tensor for the backward pass has a last dim rounded up to 8.
void ctc_loss(Tensor log_probs, Tensor targets, Ints input_lengths, Ints target_lengths,
              int64_t blank, bool zero_infinity, Out loss, Tensor log_alpha) {
  check_ctc(log_probs, targets, input_lengths, target_lengths, blank);
  check_classes(targets, target_lengths, log_probs.size(-1));
  const auto [likelihood, alpha] = at::_ctc_loss(at_least_float(log_probs), targets, input_lengths,
                                                 target_lengths, blank, zero_infinity);
  loss = likelihood;
  const Tensor room = log_alpha.narrow(-1, 0, alpha.size(-1)).copy_(alpha);
  // ATen does not write what is after the end of an input or a target.
  for (size_t n = 0; n < input_lengths.size() && room.dim() == 3; ++n) {
    const Tensor own = room[static_cast<int64_t>(n)];
    own.slice(0, input_lengths[n]).fill_(-INFINITY);
    own.slice(1, 2 * target_lengths[n] + 1).fill_(-INFINITY);
  }
}

void ctc_loss_backward(Tensor gradient, Tensor log_probs, Tensor targets, Ints input_lengths,
                       Ints target_lengths, Tensor likelihood, Tensor log_alpha, int64_t blank,
                       bool zero_infinity, Out out) {
  check_rank(log_alpha, "logAlpha", 3, 3);
  check_ctc(log_probs, targets, input_lengths, target_lengths, blank);
  check_classes(targets, target_lengths, log_probs.size(-1));
  int64_t longest = 0;
  for (const int64_t length : target_lengths) longest = std::max(longest, length);
  const Tensor alpha = at_least_float(log_alpha).narrow(-1, 0, 2 * longest + 1).contiguous();
  out = at::_ctc_loss_backward(at_least_float(gradient), at_least_float(log_probs), targets,
                               input_lengths, target_lengths, at_least_float(likelihood), alpha,
                               blank, zero_infinity);
}

// A weight with one dim has an element for each channel, which is dim 1.
Tensor by_channel(const Tensor& weight, const Tensor& self) {
  if (weight.dim() != 1 || self.dim() <= 2) return weight;
  Ints shape(static_cast<size_t>(self.dim()), 1);
  shape[1] = weight.numel();
  return weight.reshape(shape);
}

void prelu(Tensor self, Tensor weight, Out out) {
  out = at::_prelu_kernel(self, by_channel(weight, self));
}

// The gradient of the weight, one for all elements or one for each channel, is a sum.
void prelu_backward(Tensor gradient, Tensor self, Tensor weight, Out out, Out weight_out) {
  const auto [by_self, by_weight] =
      at::_prelu_kernel_backward(gradient, self, by_channel(weight, self));
  out = by_self;
  const Tensor& room = weight_out.tensor();
  if (!room.defined()) return;
  if (room.numel() == by_weight.numel()) {
    weight_out = by_weight;
  } else if (room.numel() == 1) {
    weight_out = by_weight.sum();
  } else {
    Ints others;
    for (int64_t i = 0; i < by_weight.dim(); ++i) {
      if (i != 1) others.push_back(i);
    }
    weight_out = by_weight.sum(others);
  }
}

}  // namespace

const Composite loss_composites[] = {
    ENTRY(bce_backward),
    ENTRY(l1_loss_backward),
    ENTRY(kl_div_backward),
    ENTRY(kl_div_target_backward),
    ENTRY(bce_with_logits_backward),
    ENTRY(log_sigmoid_forward),
    ENTRY(log_sigmoid_backward),
    ENTRY(nll_loss),
    ENTRY(nll_loss_backward),
    ENTRY(nll_loss2d),
    ENTRY(nll_loss2d_backward),
    ENTRY(multilabel_margin_loss),
    ENTRY(ctc_loss),
    ENTRY(ctc_loss_backward),
    ENTRY(prelu),
    ENTRY(prelu_backward),
    {},
};

}  // namespace openaclnn::aten
