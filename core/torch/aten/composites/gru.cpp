// SPDX-License-Identifier: Apache-2.0
// GRU over a sequence, with its gradient by hand; n is the candidate:  n = tanh(a + r m),
// h' = (1 - z) n + z h, m = h W + b. The gates come as r, z, n in the order "rzh", z, r, n in
// "zrh".
#include "core/torch/aten/composites/recurrent.h"

namespace openaclnn::aten {

GruSteps gru_steps(const Tensor& x, const Tensor& weight_input, const Tensor& weight_hidden,
                   const Tensor& bias_input, const Tensor& bias_hidden, const Tensor& h0,
                   const Tensor& mask, const Text& order, const Text& direction) {
  const bool r_first = order == "rzh";
  check_weights(weight_input, weight_hidden, 3);
  check_bias(bias_input, weight_hidden);
  check_bias(bias_hidden, weight_hidden);
  const int64_t hidden = weight_hidden.size(0);
  const Tensor wh = wide(weight_hidden);
  Tensor inputs = at::matmul(wide(x), wide(weight_input));
  if (bias_input.defined()) inputs = inputs + wide(bias_input).flatten();
  Tensor h = state(h0, x, hidden);
  const Tensor all[] = {stacked(x, hidden), stacked(x, hidden), stacked(x, hidden),
                        stacked(x, hidden), stacked(x, hidden)};
  for (const int64_t t : steps(x, direction)) {
    const std::vector<Tensor> a = inputs[t].chunk(3, 1);
    Tensor recurrent = at::matmul(h, wh);
    if (bias_hidden.defined()) recurrent = recurrent + wide(bias_hidden).flatten();
    const std::vector<Tensor> b = recurrent.chunk(3, 1);
    const Tensor r = at::sigmoid(r_first ? a[0] + b[0] : a[1] + b[1]);
    const Tensor z = at::sigmoid(r_first ? a[1] + b[1] : a[0] + b[0]);
    const Tensor n = at::tanh(a[2] + r * b[2]);
    const Tensor next = (1 - z) * n + z * h;
    h = mask.defined() ? at::lerp(h, next, mask[t]) : next;
    const Tensor step[] = {h, z, r, n, b[2]};
    for (size_t k = 0; k < 5; ++k) all[k][t].copy_(step[k]);
  }
  return {all[0], all[1], all[2], all[3], all[4]};
}

GruGradient gru_backward(const Tensor& x, const Tensor& weight_input, const Tensor& weight_hidden,
                         const Tensor& h0, const Tensor& h, const Tensor& dy, const Tensor& dh_last,
                         const Tensor& z, const Tensor& r, const Tensor& n, const Tensor& m,
                         const Tensor& mask, const Text& order, const Text& direction) {
  const bool r_first = order == "rzh";
  check_weights(weight_input, weight_hidden, 3);
  const int64_t hidden = weight_hidden.size(0);
  const Tensor wi = wide(weight_input), wh = wide(weight_hidden);
  const Tensor first = state(h0, x, hidden);
  Tensor dh = state(dh_last, x, hidden);
  Tensor sum_wi = at::zeros_like(wi), sum_wh = at::zeros_like(wh);
  Tensor sum_bi = at::zeros({3 * hidden}, wi.options()), sum_bh = at::zeros_like(sum_bi);
  const Tensor all_dx = stacked(x, x.size(2));
  const Ints order_of_steps = steps(x, direction);
  for (size_t k = order_of_steps.size(); k-- > 0;) {
    const int64_t t = order_of_steps[k];
    const Tensor before = k > 0 ? wide(h[order_of_steps[k - 1]]) : first;
    const Tensor zt = wide(z[t]), rt = wide(r[t]), nt = wide(n[t]), mt = wide(m[t]);
    if (dy.defined()) dh = dh + wide(dy[t]);
    Tensor kept;  // the gradient that passes a step which the mask leaves out
    if (mask.defined()) kept = dh * (1 - mask[t]), dh = dh * mask[t];
    const Tensor da = dh * (1 - zt) * (1 - nt * nt);
    const Tensor dz = dh * (before - nt) * zt * (1 - zt);
    const Tensor dr = da * mt * rt * (1 - rt);
    const Tensor d_input = r_first ? at::cat({dr, dz, da}, 1) : at::cat({dz, dr, da}, 1);
    const Tensor d_hidden = r_first ? at::cat({dr, dz, da * rt}, 1) : at::cat({dz, dr, da * rt}, 1);
    sum_wi += at::matmul(wide(x[t]).t(), d_input);
    sum_wh += at::matmul(before.t(), d_hidden);
    sum_bi += d_input.sum(0);
    sum_bh += d_hidden.sum(0);
    all_dx[t].copy_(at::matmul(d_input, wi.t()));
    dh = dh * zt + at::matmul(d_hidden, wh.t());
    if (mask.defined()) dh = dh + kept;
  }
  return {sum_wi, sum_wh, sum_bi, sum_bh, all_dx, dh};
}

namespace {

void check_order(const Text& order, bool reset_after) {
  if (!reset_after) throw Refusal("reset_after must be true, but got false");
  if (order != "rzh" && order != "zrh")
    throw Refusal("gate_order must be rzh or zrh, but got " + order);
}

void gru(Tensor x, Tensor weight_input, Tensor weight_hidden, Tensor bias_input, Tensor bias_hidden,
         Tensor lengths, Tensor h0, Out y, Out h_out, Out z_out, Out r_out, Out n_out, Out m_out,
         Text gate_order, bool reset_after, Text direction) {
  must_be_absent("seq_length", lengths);
  check_order(gate_order, reset_after);
  const GruSteps all = gru_steps(x, weight_input, weight_hidden, bias_input, bias_hidden, h0, {},
                                 gate_order, direction);
  y = all.h, h_out = all.h, z_out = all.z, r_out = all.r, n_out = all.n, m_out = all.m;
}

void gru_grad(Tensor x, Tensor weight_input, Tensor weight_hidden, Tensor, Tensor h0, Tensor h,
              Tensor dy, Tensor dh_last, Tensor z, Tensor r, Tensor n, Tensor m, Tensor lengths,
              Tensor mask, Out dweight_input, Out dweight_hidden, Out dbias_input, Out dbias_hidden,
              Out dx, Out dh_first, Text gate_order, bool reset_after, Text direction) {
  must_be_absent("seq_length", lengths);
  must_be_absent("mask", mask);
  check_order(gate_order, reset_after);
  const GruGradient sum = gru_backward(x, weight_input, weight_hidden, h0, h, dy, dh_last, z, r, n,
                                       m, {}, gate_order, direction);
  dweight_input = sum.weight_input, dweight_hidden = sum.weight_hidden;
  dbias_input = sum.bias_input, dbias_hidden = sum.bias_hidden, dx = sum.x, dh_first = sum.h;
}

}  // namespace

const Composite gru_composites[] = {
    ENTRY(gru),
    ENTRY(gru_grad),
    {},
};

}  // namespace openaclnn::aten
