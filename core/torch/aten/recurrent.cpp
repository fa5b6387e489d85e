// SPDX-License-Identifier: Apache-2.0
// LSTM and GRU over a sequence [T, B, features], with their gradients by hand.
//
// LSTM, j the candidate:  c' = f c + i j,  h' = o tanh(c').
// GRU, n the candidate:   n = tanh(a + r m),  h' = (1 - z) n + z h,  m = h W + b.
#include <sstream>

#include "core/torch/aten/checks.h"

namespace openaclnn::aten {
namespace {

struct Order {
  int64_t i, j, f, o;  // the place of each gate among the four

  explicit Order(const Text& order) {
    if (order == "ijfo") {
      i = 0, j = 1, f = 2, o = 3;
    } else if (order == "ifjo" || order == "ifco") {
      i = 0, f = 1, j = 2, o = 3;
    } else {
      throw Refusal("gate_order must be ijfo, ifjo or ifco, but got " + order);
    }
  }
};

// The steps in order; the last one comes first in the reverse direction.
Ints steps(const Tensor& x, const Text& direction) {
  check_rank(x, "x", 3, 3);
  Ints order;
  for (int64_t t = 0; t < x.size(0); ++t) order.push_back(t);
  if (direction == "REDIRECTIONAL") {
    std::reverse(order.begin(), order.end());
  } else if (direction != "UNIDIRECTIONAL") {
    throw Refusal("direction must be UNIDIRECTIONAL or REDIRECTIONAL, but got " + direction);
  }
  return order;
}

Tensor wide(const Tensor& x) { return x.to(at::kFloat); }

// A state [B, H]; zeros if it is left out.
Tensor state(const Tensor& given, const Tensor& x, int64_t hidden) {
  check_rank(x, "x", 3, 3);
  if (!given.defined()) return at::zeros({x.size(1), hidden}, x.options().dtype(at::kFloat));
  return wide(given).reshape({x.size(1), hidden});
}

// A tensor without dims counts as missing.
bool is_there(const Tensor& given) { return given.defined() && given.dim() > 0; }

// 1 for the steps that count and 0 for padding, [T, B, H]; undefined if it is left out.
Tensor mask_of(const Tensor& lengths, const Tensor& like) {
  if (!is_there(lengths)) return {};
  if (lengths.sizes() == like.sizes()) return wide(lengths);
  std::ostringstream shape;
  shape << "seq_length must be a mask of shape " << like.sizes() << ", but got " << lengths.sizes();
  throw Refusal(shape.str());
}

void must_be_absent(const char* name, const Tensor& given) {
  if (is_there(given)) throw Refusal(std::string(name) + " must be left out, but was given");
}

Tensor stacked(const Tensor& x, int64_t hidden) {
  check_rank(x, "x", 3, 3);
  return at::empty({x.size(0), x.size(1), hidden}, x.options().dtype(at::kFloat));
}

void check_weights(const Tensor& input, const Tensor& hidden, int64_t gates) {
  const bool fits = input.dim() == 2 && hidden.dim() == 2 &&
                    hidden.size(1) == gates * hidden.size(0) && input.size(1) == hidden.size(1);
  if (fits) return;
  const auto shape = [](const Tensor& x) {
    std::string text;
    for (const int64_t size : x.sizes()) text += (text.empty() ? "" : ", ") + std::to_string(size);
    return "(" + text + ")";
  };
  throw Refusal("weights must have the shapes (features, " + std::to_string(gates) +
                " hidden) and (hidden, " + std::to_string(gates) + " hidden), but got " +
                shape(input) + " and " + shape(hidden));
}

void check_bias(const Tensor& bias, const Tensor& weight) {
  if (bias.defined() && bias.numel() != weight.size(1))
    throw Refusal("a bias must have " + std::to_string(weight.size(1)) + " elements, but got " +
                  std::to_string(bias.numel()));
}

void lstm_v2(Tensor x, Tensor weight_input, Tensor weight_hidden, Tensor bias, Tensor lengths,
             Tensor h0, Tensor c0, Out y, Out h_out, Out c_out, Out i_out, Out j_out, Out f_out,
             Out o_out, Out tanh_out, Text gate_order, double forget_bias, Text direction) {
  const Order order(gate_order);
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
  y = masked ? all[0] * mask : all[0];
  h_out = all[0], c_out = all[1], i_out = all[2], j_out = all[3], f_out = all[4], o_out = all[5];
  tanh_out = all[6];
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

struct LstmGradient {
  Tensor weight_input, weight_hidden, bias, x, h, c;
};

LstmGradient lstm_backward(const Tensor& given_x, const Tensor& weight_input,
                           const Tensor& weight_hidden, const Tensor& h0, const Tensor& c0,
                           const Tensor& h, const Tensor& c, const Tensor& dy,
                           const Tensor& dh_last, const Tensor& dc_last, const Tensor (&gates)[5],
                           const Tensor& lengths, const Text& gate_order, const Text& direction) {
  const Order order(gate_order);
  check_weights(weight_input, weight_hidden, 4);
  const int64_t hidden = weight_hidden.size(0), features = weight_input.size(0);
  const Ints shape = {gates[0].size(0), gates[0].size(1), hidden};
  const Tensor x = wide(given_x).reshape({shape[0], shape[1], features});
  Tensor mask = mask_of(lengths, gates[0]);
  if (!mask.defined()) mask = steps_that_count(gates);
  if (mask.defined() && direction != "UNIDIRECTIONAL")
    throw Refusal(
        "direction must be UNIDIRECTIONAL for the gradient of packed sequences, but got " +
        direction);
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

// Masks and peepholes, which torch_npu leaves out, come last.
void lstm_grad(Tensor x, Tensor w, Tensor, Tensor, Tensor h0, Tensor c0, Tensor h, Tensor c,
               Tensor dy, Tensor dh, Tensor dc, Tensor i, Tensor j, Tensor f, Tensor o,
               Tensor tanh_c, Tensor lengths, Tensor mask, Tensor, Tensor, Tensor, Out dw, Out db,
               Out dx, Out dh_first, Out dc_first, Text gate_order, Text direction) {
  must_be_absent("mask", mask);
  const int64_t features = x.size(2);
  const LstmGradient sum =
      lstm_backward(x, w.narrow(0, 0, features), w.narrow(0, features, w.size(0) - features), h0,
                    c0, h, c, dy, dh, dc, {i, j, f, o, tanh_c}, lengths, gate_order, direction);
  dw = at::cat({sum.weight_input, sum.weight_hidden}, 0);
  db = sum.bias, dx = sum.x, dh_first = sum.h, dc_first = sum.c;
}

void lstm_grad_v2(Tensor x, Tensor wi, Tensor wh, Tensor, Tensor h0, Tensor c0, Tensor h, Tensor c,
                  Tensor dy, Tensor dh, Tensor dc, Tensor i, Tensor j, Tensor f, Tensor o,
                  Tensor tanh_c, Tensor lengths, Tensor, Tensor, Tensor, Tensor mask, Out dwi,
                  Out dwh, Out db, Out dx, Out dh_first, Out dc_first, Text gate_order,
                  Text direction) {
  must_be_absent("mask", mask);
  const LstmGradient sum = lstm_backward(x, wi, wh, h0, c0, h, c, dy, dh, dc, {i, j, f, o, tanh_c},
                                         lengths, gate_order, direction);
  dwi = sum.weight_input, dwh = sum.weight_hidden, db = sum.bias, dx = sum.x;
  dh_first = sum.h, dc_first = sum.c;
}

// ---- GRU: the gates r, z, n in the order "rzh", or z, r, n in "zrh" ----

bool reset_first(const Text& order, bool reset_after) {
  if (!reset_after) throw Refusal("reset_after must be true, but got false");
  if (order != "rzh" && order != "zrh")
    throw Refusal("gate_order must be rzh or zrh, but got " + order);
  return order == "rzh";
}

void gru(Tensor x, Tensor weight_input, Tensor weight_hidden, Tensor bias_input, Tensor bias_hidden,
         Tensor lengths, Tensor h0, Out y, Out h_out, Out z_out, Out r_out, Out n_out, Out m_out,
         Text gate_order, bool reset_after, Text direction) {
  must_be_absent("seq_length", lengths);
  const bool r_first = reset_first(gate_order, reset_after);
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
    h = (1 - z) * n + z * h;
    const Tensor step[] = {h, z, r, n, b[2]};
    for (size_t k = 0; k < 5; ++k) all[k][t].copy_(step[k]);
  }
  y = all[0], h_out = all[0], z_out = all[1], r_out = all[2], n_out = all[3], m_out = all[4];
}

void gru_grad(Tensor x, Tensor weight_input, Tensor weight_hidden, Tensor, Tensor h0, Tensor h,
              Tensor dy, Tensor dh_last, Tensor z, Tensor r, Tensor n, Tensor m, Tensor lengths,
              Tensor mask, Out dweight_input, Out dweight_hidden, Out dbias_input, Out dbias_hidden,
              Out dx, Out dh_first, Text gate_order, bool reset_after, Text direction) {
  must_be_absent("seq_length", lengths);
  must_be_absent("mask", mask);
  const bool r_first = reset_first(gate_order, reset_after);
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
  }
  dweight_input = sum_wi, dweight_hidden = sum_wh, dbias_input = sum_bi, dbias_hidden = sum_bh;
  dx = all_dx, dh_first = dh;
}

}  // namespace

const Composite recurrent_composites[] = {
    ENTRY(gru),          ENTRY(gru_grad), ENTRY(lstm), ENTRY(lstm_grad),
    ENTRY(lstm_grad_v2), ENTRY(lstm_v2),  {},
};

}  // namespace openaclnn::aten
