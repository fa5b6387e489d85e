// SPDX-License-Identifier: Apache-2.0
// Layers for inference. 16-bit floats are computed in float and rounded once.
#include "core/torch/aten/composite.h"

namespace openaclnn::aten {
namespace {

Tensor at_least_float(const Tensor& x) {
  const bool half = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  return half ? x.to(at::kFloat) : x;
}

void add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, double eps, Out out, Out rstd, Out sum) {
  const Tensor x = at_least_float(x1) + at_least_float(x2);
  Ints dims;
  for (int64_t i = x.dim() - gamma.dim(); i < x.dim(); ++i) dims.push_back(i);
  const Tensor r = at::rsqrt(at::mean(at::square(x), dims, true) + eps);
  out = x * r * gamma;
  rstd = r;
  sum = x;
}

// Takes self at the positions of index, whose dims replace dim.
void gather_v2(Tensor self, int64_t dim, Tensor index, Out out) {
  if (self.dim() == 0) throw Refusal("self must have at least one dim, but has none");
  const int64_t d = at::maybe_wrap_dim(dim, self.dim());
  Ints shape(self.sizes().begin(), self.sizes().begin() + d);
  shape.insert(shape.end(), index.sizes().begin(), index.sizes().end());
  shape.insert(shape.end(), self.sizes().begin() + d + 1, self.sizes().end());
  out = at::index_select(self, d, index.flatten().to(at::kLong)).reshape(shape);
}

void index_fill_ints(Tensor self, int64_t dim, Ints index, at::Scalar value) {
  self.index_fill_(dim, at::tensor(index, at::kLong), value);
}

// ---- gates: one half of x is activated and multiplies the other ----

std::pair<Tensor, Tensor> halves(const Tensor& x, int64_t dim) {
  const int64_t size = x.size(dim);
  if (size % 2 != 0)
    throw Refusal("the size along dim must be even, but is " + std::to_string(size));
  return {at_least_float(x.narrow(dim, 0, size / 2)),
          at_least_float(x.narrow(dim, size / 2, size / 2))};
}

void swi_glu(Tensor x, int64_t dim, Out out) {
  const auto [gate, value] = halves(x, dim);
  out = at::silu(gate) * value;
}

void ge_glu(Tensor x, int64_t dim, int64_t tanh, bool left, Out out, Out gelu) {
  const auto [first, second] = halves(x, dim);
  const Tensor active = at::gelu(left ? first : second, tanh != 0 ? "tanh" : "none");
  out = active * (left ? second : first);
  gelu = active;
}

// ---- rotary position embedding: x cos + rotated(x) sin ----

// mode: 0 halves (-b, a); 1 pairs; 2 quarters (-b, a, -d, c); 3 pairs, stored as halves.
void rotary_position_embedding(Tensor x, Tensor cos, Tensor sin, int64_t mode, Out out) {
  if (x.size(-1) % (mode == 2 ? 4 : 2) != 0)
    throw Refusal("the last dim of x must divide by " + std::to_string(mode == 2 ? 4 : 2) +
                  ", but is " + std::to_string(x.size(-1)));
  Tensor v = at_least_float(x), rotated;
  if (mode == 3) v = at::cat({v.slice(-1, 0, {}, 2), v.slice(-1, 1, {}, 2)}, -1);
  switch (mode) {
    case 0:
    case 3: {
      const auto parts = v.chunk(2, -1);
      rotated = at::cat({-parts[1], parts[0]}, -1);
      break;
    }
    case 1:
      rotated = at::stack({-v.slice(-1, 1, {}, 2), v.slice(-1, 0, {}, 2)}, -1).flatten(-2);
      break;
    case 2: {
      const auto parts = v.chunk(4, -1);
      rotated = at::cat({-parts[1], parts[0], -parts[3], parts[2]}, -1);
      break;
    }
    default: throw Refusal("mode must be in [0, 3], but got " + std::to_string(mode));
  }
  out = v * at_least_float(cos) + rotated * at_least_float(sin);
}

// loss = sum(labels (ln sum(exp x) - x)) of each row, backprop = softmax(x) - labels.
void softmax_cross_entropy(Tensor x, Tensor labels, Out loss, Out backprop) {
  const Tensor log = at::log_softmax(at_least_float(x), -1), target = at_least_float(labels);
  loss = -(target * log).sum(-1);
  backprop = at::exp(log) - target;
}

// pads: one for all sides, height and width, or top, bottom, left, right.
void max_pool(Tensor self, Ints kernel, Ints stride, int64_t auto_pad, Ints pads, Ints dilation,
              int64_t ceil, Out out) {
  if (auto_pad != 0)
    throw Refusal("autoPad must be 0, pads as they are given, but got " + std::to_string(auto_pad));
  if (pads.empty()) pads = {0};
  if (pads.size() == 1) pads = Ints(4, pads[0]);
  if (pads.size() == 2) pads = {pads[0], pads[0], pads[1], pads[1]};
  if (pads.size() != 4)
    throw Refusal("pads must have 1, 2 or 4 numbers, but has " + std::to_string(pads.size()));
  if (dilation.empty()) dilation = {1};
  Tensor x = self;
  if (pads != Ints(4, 0)) {
    x = at::constant_pad_nd(self, {pads[2], pads[3], pads[0], pads[1]},
                            -std::numeric_limits<double>::infinity());
  }
  out = at::max_pool2d(x, kernel, stride, {0}, dilation, ceil != 0);
}

// ---- quantised weights ----

// 4-bit integers lie two in a byte, the first in the low half; their strides count halves of bytes.
Tensor unpacked(const Tensor& packed) {
  if (packed.scalar_type() != at::ScalarType::Int4) return packed;
  need_data(packed);
  const Tensor made = at::empty(packed.sizes(), at::kChar);
  const auto* bytes = static_cast<const uint8_t*>(packed.const_data_ptr());
  auto* to = data_of<int8_t>(made);
  Ints at(static_cast<size_t>(packed.dim()));
  for (int64_t i = 0; i < made.numel(); ++i) {
    int64_t place = 0, rest = i;
    for (int64_t d = packed.dim(); d-- > 0;) {
      place += rest % packed.size(d) * packed.stride(d);
      rest /= packed.size(d);
    }
    const int half = bytes[place / 2] >> (place % 2 * 4) & 15;
    to[i] = static_cast<int8_t>(half < 8 ? half : half - 16);
  }
  return made;
}

// One number for each group of `group` rows of the weight, or for all rows when it is 0.
Tensor of_groups(const Tensor& given, const Tensor& weight, int64_t group) {
  const Tensor x = given.to(at::kFloat);
  if (x.numel() == 1 || group <= 0 || x.dim() < 2) return x;
  return x.repeat_interleave(group, -2).narrow(-2, 0, weight.size(-2));
}

// x ((weight + offset) scale) + bias
void weight_quant_matmul(Tensor x, Tensor weight, Tensor scale, Tensor offset, Tensor quant_scale,
                         Tensor, Tensor bias, int64_t group, Out out) {
  if (quant_scale.defined())
    throw Refusal("quantScale must be NULL: results are not quantised here");
  if (!scale.defined()) throw Refusal("antiquantScale must not be NULL");
  Tensor w = unpacked(weight).to(at::kFloat);
  if (offset.defined()) w = w + of_groups(offset, w, group);
  w = w * of_groups(scale, w, group);
  Tensor y = at::matmul(x.to(at::kFloat), w);
  if (bias.defined()) y = y + bias;
  out = y;
}

// Matrices stay as they are: a CPU does not need another order in memory.
void trans_matmul_weight(Tensor) {}

Tensor product(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor y = at::matmul(at_least_float(x), at_least_float(weight));
  return bias.defined() ? y + at_least_float(bias) : y;
}

// Without groupList y[i] = x[i] weight[i] + bias[i]; with it rows up to groupList[i] of the one x
// go with weight i.
void grouped_matmul(Tensors x, Tensors weight, Tensors bias, Tensors scale, Tensors offset,
                    Tensors antiquant_scale, Tensors antiquant_offset, Tensor groups, int64_t,
                    int64_t type, Tensors out) {
  for (const Tensors* list : {&scale, &offset, &antiquant_scale, &antiquant_offset}) {
    if (!list->empty()) throw Refusal("quantised groups are not computed here: use NULL");
  }
  const auto bias_of = [&](size_t i) { return i < bias.size() ? bias[i] : Tensor(); };
  if (!groups.defined()) {
    if (x.size() != weight.size() || x.size() != out.size())
      throw Refusal("x, weight and y must have as many tensors as each other without groupList");
    for (size_t i = 0; i < x.size(); ++i) put(out[i], product(x[i], weight[i], bias_of(i)));
    return;
  }
  if (type != 0 || x.size() != 1 || out.size() != 1)
    throw Refusal("groupType must be 0, with one tensor in x and in y, where groupList is given");
  if (weight.size() == 1) weight = weight[0].unbind(0);
  if (bias.size() == 1) bias = bias[0].unbind(0);
  int64_t begin = 0;
  std::vector<Tensor> made;
  for (int64_t i = 0; i < groups.numel() && i < static_cast<int64_t>(weight.size()); ++i) {
    const int64_t end = number_in(groups[i]);
    const auto k = static_cast<size_t>(i);
    made.push_back(product(x[0].slice(0, begin, end), weight[k], bias_of(k)));
    begin = end;
  }
  put(out[0], at::cat(made));
}

// ---- linear attention whose state forgets and is corrected ----

// For each token, with the state S of its sequence and head: S = S exp(g), S += beta (v - S k) kᵀ,
// out = S q scale. A sequence goes on from the state of its last accepted token, and every token
// leaves a state at its own index.
void recurrent_gated_delta(Tensor query, Tensor key, Tensor value, Tensor beta, Tensor state,
                           Tensor lengths, Tensor places, Tensor decay, Tensor key_decay,
                           Tensor accepted, double scale, Out out) {
  const Tensor q = query.to(at::kFloat) * scale, k = key.to(at::kFloat), v = value.to(at::kFloat);
  const int64_t times = v.size(1) / k.size(1);
  Tensor made = at::zeros_like(v);
  int64_t token = 0;
  for (int64_t b = 0; b < lengths.numel(); ++b) {
    const int64_t length = number_in(lengths[b]);
    const int64_t last = accepted.defined() ? number_in(accepted[b]) - 1 : 0;
    if (length == 0) continue;
    Tensor s = state[number_in(places[token + last])].to(at::kFloat);
    for (const int64_t end = token + length; token < end; ++token) {
      const auto heads = [&](const Tensor& x) {  // [Nv, 1, Dk]
        return x[token].repeat_interleave(times, 0).unsqueeze(1);
      };
      if (decay.defined()) s = s * at::exp(decay[token].to(at::kFloat)).view({-1, 1, 1});
      if (key_decay.defined()) s = s * at::exp(key_decay[token].to(at::kFloat)).unsqueeze(1);
      const Tensor miss = v[token] - (s * heads(k)).sum(-1);
      s = s + (beta[token].to(at::kFloat).unsqueeze(-1) * miss).unsqueeze(-1) * heads(k);
      made[token].copy_((s * heads(q)).sum(-1));
      state[number_in(places[token])].copy_(s);
    }
  }
  out = made;
}

}  // namespace

const Composite inference_composites[] = {
    ENTRY(add_rms_norm),
    ENTRY(gather_v2),
    ENTRY(ge_glu),
    ENTRY(grouped_matmul),
    ENTRY(index_fill_ints),
    ENTRY(max_pool),
    ENTRY(recurrent_gated_delta),
    ENTRY(rotary_position_embedding),
    ENTRY(softmax_cross_entropy),
    ENTRY(swi_glu),
    ENTRY(trans_matmul_weight),
    ENTRY(weight_quant_matmul),
    {},
};

}  // namespace openaclnn::aten
