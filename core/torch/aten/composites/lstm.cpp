// SPDX-License-Identifier: Apache-2.0
// LSTM over a sequence, with its gradient by hand; j is the candidate:  c' = f c + i j,
// h' = o tanh(c').
#include "core/torch/aten/composites/recurrent.h"

namespace openaclnn::aten {
namespace {

struct GateOrder {
  int64_t i, j, f, o;  // the place of each gate among the four

  explicit GateOrder(const Text& order) {
    if (order == "ijfo") {
      i = 0, j = 1, f = 2, o = 3;
    } else if (order == "ifjo" || order == "ifco") {
      i = 0, f = 1, j = 2, o = 3;
    } else {
      throw Refusal("gate_order must be ijfo, ifjo or ifco, but got " + order);
    }
  }
};

}  // namespace

LstmSteps lstm_steps(const Tensor& x, const Tensor& weight_input, const Tensor& weight_hidden,
                     const Tensor& bias, const Tensor& lengths, const Tensor& h0, const Tensor& c0,
                     const Text& gate_order, double forget_bias, const Text& direction) {
  const GateOrder order(gate_order);
  check_weights(weight_input, weight_hidden, 4);
  check_bias(bias, weight_hidden);
  const int64_t hidden = weight_hidden.size(0);
  const Tensor wi = wide(weight_input), wh = wide(weight_hidden);
  Tensor inputs = at::matmul(wide(x), wi);
  if (bias.defined()) inputs = inputs + wide(bias).flatten();
  Tensor h = state(h0, x, hidden), c = state(c0, x, hidden);
  const Tensor all[] = {stacked(x, hidden), stacked(x, hidden), stacked(x, hidden),
                        stacked(x, hidden), stacked(x, hidden), stacked(x, hidden),
                        stacked(x, hidden)};
  const Tensor mask = mask_of(lengths, all[0]);
  const bool masked = mask.defined();
  for (const int64_t t : steps(x, direction)) {
    const std::vector<Tensor> gates = (inputs[t] + at::matmul(h, wh)).chunk(4, 1);
    const Tensor i = at::sigmoid(gates[static_cast<size_t>(order.i)]);
    const Tensor j = at::tanh(gates[static_cast<size_t>(order.j)]);
    const Tensor f = at::sigmoid(gates[static_cast<size_t>(order.f)] + forget_bias);
    const Tensor o = at::sigmoid(gates[static_cast<size_t>(order.o)]);
    const Tensor next_c = f * c + i * j, tanh_c = at::tanh(next_c);
    const Tensor next_h = o * tanh_c;
    c = masked ? at::lerp(c, next_c, mask[t]) : next_c;
    h = masked ? at::lerp(h, next_h, mask[t]) : next_h;
    const auto saved = [&](const Tensor& gate, double otherwise) {
      return masked ? at::where(mask[t] > 0, gate, otherwise) : gate;
    };
    const Tensor step[] = {h, c, saved(i, 0), saved(j, 0), saved(f, 1), saved(o, 0), tanh_c};
    for (size_t k = 0; k < 7; ++k) all[k][t].copy_(step[k]);
  }
  return {masked ? all[0] * mask : all[0], all[0], all[1], all[2], all[3], all[4], all[5], all[6]};
}

namespace {

void lstm_v2(Tensor x, Tensor weight_input, Tensor weight_hidden, Tensor bias, Tensor lengths,
             Tensor h0, Tensor c0, Out y, Out h_out, Out c_out, Out i_out, Out j_out, Out f_out,
             Out o_out, Out tanh_out, Text gate_order, double forget_bias, Text direction) {
  const LstmSteps all = lstm_steps(x, weight_input, weight_hidden, bias, lengths, h0, c0,
                                   gate_order, forget_bias, direction);
  y = all.y, h_out = all.h, c_out = all.c, i_out = all.i, j_out = all.j, f_out = all.f;
  o_out = all.o, tanh_out = all.tanh_c;
}

void lstm(Tensor x, Tensor w, Tensor bias, Tensor lengths, Tensor h0, Tensor c0, Out y, Out h_out,
          Out c_out, Out i_out, Out j_out, Out f_out, Out o_out, Out tanh_out, Text gate_order,
          double forget_bias, Text direction) {
  const int64_t features = x.size(2);
  lstm_v2(x, w.narrow(0, 0, features), w.narrow(0, features, w.size(0) - features), bias, lengths,
          h0, c0, y, h_out, c_out, i_out, j_out, f_out, o_out, tanh_out, gate_order, forget_bias,
          direction);
}

// The forward pass saves a step that it skips as gates that let c through and write nothing: i, j
// and o are 0, and f is 1. The gradient recognises it even though torch_npu passes no mask.
Tensor steps_that_count(const Tensor (&gates)[5]) {
  const Tensor left_out = (gates[0] == 0) & (gates[1] == 0) & (gates[2] == 1) & (gates[3] == 0);
  return number_in<bool>(left_out.any()) ? left_out.logical_not().to(at::kFloat) : Tensor();
}

Tensor mask_in(const Tensor& lengths, const Tensor (&gates)[5], const Text& direction) {
  Tensor mask = mask_of(lengths, gates[0]);
  if (!mask.defined()) mask = steps_that_count(gates);
  require(!mask.defined() || direction == "UNIDIRECTIONAL",
          "direction must be UNIDIRECTIONAL for the gradient of packed sequences, but got ",
          direction);
  return mask;
}

}  // namespace

LstmGradient lstm_backward(const Tensor& given_x, const Tensor& weight_input,
                           const Tensor& weight_hidden, const Tensor& h0, const Tensor& c0,
                           const Tensor& h, const Tensor& c, const Tensor& dy,
                           const Tensor& dh_last, const Tensor& dc_last, const Tensor (&gates)[5],
                           const Tensor& mask, const Text& gate_order, const Text& direction) {
  const GateOrder order(gate_order);
  check_weights(weight_input, weight_hidden, 4);
  const int64_t hidden = weight_hidden.size(0), features = weight_input.size(0);
  const Ints shape = {gates[0].size(0), gates[0].size(1), hidden};
  const Tensor x = wide(given_x).reshape({shape[0], shape[1], features});
  const Tensor all_h = wide(h).reshape(shape), all_c = wide(c).reshape(shape);
  const Tensor wi = wide(weight_input).t(), wh = wide(weight_hidden).t();
  const Tensor first_h = state(h0, x, hidden), first_c = state(c0, x, hidden);
  Tensor dh = state(dh_last, x, hidden), dc = state(dc_last, x, hidden);
  LstmGradient sum = {at::zeros_like(wi.t()),
                      at::zeros_like(wh.t()),
                      at::zeros({4 * hidden}, wi.options()),
                      stacked(x, features),
                      {},
                      {}};
  const Ints order_of_steps = steps(x, direction);
  for (size_t k = order_of_steps.size(); k-- > 0;) {
    const int64_t t = order_of_steps[k];
    const Tensor h_before = k > 0 ? all_h[order_of_steps[k - 1]] : first_h;
    const Tensor c_before = k > 0 ? all_c[order_of_steps[k - 1]] : first_c;
    const Tensor i = wide(gates[0][t]), j = wide(gates[1][t]), f = wide(gates[2][t]);
    const Tensor o = wide(gates[3][t]), tanh_c = wide(gates[4][t]);
    Tensor kept_h, kept_c;  // the gradients that pass a step which the mask leaves out
    if (mask.defined()) {
      if (dy.defined()) dh = dh + wide(dy[t]) * mask[t];
      kept_h = dh * (1 - mask[t]), kept_c = dc * (1 - mask[t]);
      dh = dh * mask[t], dc = dc * mask[t];
    } else if (dy.defined()) {
      dh = dh + wide(dy[t]);
    }
    dc = dc + dh * o * (1 - tanh_c * tanh_c);
    std::vector<Tensor> parts(4);
    parts[static_cast<size_t>(order.i)] = dc * j * i * (1 - i);
    parts[static_cast<size_t>(order.j)] = dc * i * (1 - j * j);
    parts[static_cast<size_t>(order.f)] = dc * c_before * f * (1 - f);
    parts[static_cast<size_t>(order.o)] = dh * tanh_c * o * (1 - o);
    const Tensor d = at::cat(parts, 1);
    sum.weight_input += at::matmul(x[t].t(), d);
    sum.weight_hidden += at::matmul(h_before.t(), d);
    sum.bias += d.sum(0);
    sum.x[t].copy_(at::matmul(d, wi));
    dh = at::matmul(d, wh);
    dc = dc * f;
    if (mask.defined()) dh = dh + kept_h, dc = dc + kept_c;
  }
  sum.h = dh, sum.c = dc;
  return sum;
}

namespace {

// Masks and peepholes, which torch_npu leaves out, come last.
void lstm_grad(Tensor x, Tensor w, Tensor, Tensor, Tensor h0, Tensor c0, Tensor h, Tensor c,
               Tensor dy, Tensor dh, Tensor dc, Tensor i, Tensor j, Tensor f, Tensor o,
               Tensor tanh_c, Tensor lengths, Tensor mask, Tensor, Tensor, Tensor, Out dw, Out db,
               Out dx, Out dh_first, Out dc_first, Text gate_order, Text direction) {
  must_be_absent("mask", mask);
  const int64_t features = x.size(2);
  const Tensor gates[] = {i, j, f, o, tanh_c};
  const LstmGradient sum = lstm_backward(
      x, w.narrow(0, 0, features), w.narrow(0, features, w.size(0) - features), h0, c0, h, c, dy,
      dh, dc, gates, mask_in(lengths, gates, direction), gate_order, direction);
  dw = at::cat({sum.weight_input, sum.weight_hidden}, 0);
  db = sum.bias, dx = sum.x, dh_first = sum.h, dc_first = sum.c;
}

void lstm_grad_v2(Tensor x, Tensor wi, Tensor wh, Tensor, Tensor h0, Tensor c0, Tensor h, Tensor c,
                  Tensor dy, Tensor dh, Tensor dc, Tensor i, Tensor j, Tensor f, Tensor o,
                  Tensor tanh_c, Tensor lengths, Tensor, Tensor, Tensor, Tensor mask, Out dwi,
                  Out dwh, Out db, Out dx, Out dh_first, Out dc_first, Text gate_order,
                  Text direction) {
  must_be_absent("mask", mask);
  const Tensor gates[] = {i, j, f, o, tanh_c};
  const LstmGradient sum = lstm_backward(x, wi, wh, h0, c0, h, c, dy, dh, dc, gates,
                                         mask_in(lengths, gates, direction), gate_order, direction);
  dwi = sum.weight_input, dwh = sum.weight_hidden, db = sum.bias, dx = sum.x;
  dh_first = sum.h, dc_first = sum.c;
}

// ---- one step; gates (B, 4 H) come as i, f, j, o ----

void lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor input_bias,
               Tensor hidden_bias, Out hy, Out cy, Out storage) {
  Tensor sum = wide(input_gates) + wide(hidden_gates);
  for (const Tensor& bias : {input_bias, hidden_bias})
    if (bias.defined()) sum = sum + wide(bias);
  const Tensors gates = equal_parts(sum, 4, 1, "inputGates");
  const Tensor i = at::sigmoid(gates[0]), f = at::sigmoid(gates[1]);
  const Tensor j = at::tanh(gates[2]), o = at::sigmoid(gates[3]);
  check_shape(cx, "cx", i.sizes());
  const Tensor next = f * wide(cx) + i * j;
  hy = o * at::tanh(next);
  cy = next;
  storage = at::cat({i, f, j, o}, 1);
}

void lstm_cell_grad(Tensor dh, Tensor dc, Tensor cx, Tensor cy, Tensor storage, bool has_bias,
                    Out dgates, Out dcx, Out dbias) {
  const Tensors gates = equal_parts(wide(storage), 4, 1, "storage");
  const Tensor i = gates[0], f = gates[1], j = gates[2], o = gates[3];
  check_shape(cx, "cx", i.sizes());
  check_shape(cy, "cy", i.sizes());
  check_optional(dh, "gradHy", i.sizes());
  check_optional(dc, "gradC", i.sizes());
  const Tensor t = at::tanh(wide(cy)), g = dh.defined() ? wide(dh) : at::zeros_like(t);
  Tensor d = g * o * (1 - t * t);
  if (dc.defined()) d = d + wide(dc);
  const Tensor all = at::cat(
      {d * j * i * (1 - i), d * wide(cx) * f * (1 - f), d * i * (1 - j * j), g * t * o * (1 - o)},
      1);
  dgates = all;
  dcx = d * f;
  if (has_bias) dbias = all.sum(0);
}

}  // namespace

const Composite lstm_composites[] = {
    ENTRY(lstm_v2),        ENTRY(lstm), ENTRY(lstm_grad), ENTRY(lstm_grad_v2), ENTRY(lstm_cell),
    ENTRY(lstm_cell_grad), {},
};

}  // namespace openaclnn::aten
