// SPDX-License-Identifier: Apache-2.0
// Normalisations, softmax, gates, rotary embedding, attention.
#include "aclnnop/aclnn_add_rms_norm.h"
#include "aclnnop/aclnn_fused_infer_attention_score_v2.h"
#include "aclnnop/aclnn_geglu.h"
#include "aclnnop/aclnn_group_norm.h"
#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_logsoftmax.h"
#include "aclnnop/aclnn_recurrent_gated_delta_rule.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_rotary_position_embedding.h"
#include "aclnnop/aclnn_softmax.h"
#include "aclnnop/aclnn_softmax_cross_entropy_with_logits.h"
#include "aclnnop/aclnn_swi_glu.h"
#include "calls.h"

namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Numbers filled(size_t count, const std::function<double(size_t)>& f) {
  Numbers made(count);
  for (size_t i = 0; i < count; ++i) made[i] = f(i);
  return made;
}

void normalised() {
  const size_t rows = 4, n = 24;
  const double eps = 1e-5;
  const Numbers x = random_numbers(rows * n), y = random_numbers(rows * n),
                gamma = random_numbers(n);
  const auto over = [&](const Numbers& of, bool centred, auto finish) {
    Numbers made, scale;
    for (size_t r = 0; r < rows; ++r) {
      double mean = 0, square = 0;
      for (size_t i = 0; i < n; ++i) mean += of[r * n + i] / n;
      if (!centred) mean = 0;
      for (size_t i = 0; i < n; ++i) square += std::pow(of[r * n + i] - mean, 2) / n;
      scale.push_back(1 / std::sqrt(square + eps));
      for (size_t i = 0; i < n; ++i)
        made.push_back(finish((of[r * n + i] - mean) * scale.back(), i));
    }
    return std::pair(made, scale);
  };
  const auto weighted = [&](double v, size_t i) { return v * gamma[i]; };
  const auto plain = [](double v, size_t) { return v; };
  const Numbers ones(rows * n, 1);
  for (const aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16}) {
    const Array a({4, 24}, x, dtype), b({4, 24}, y, dtype), g({24}, gamma, dtype);
    const Array out({4, 24}, dtype), rstd({4, 1}), sum({4, 24}, dtype);
    const auto [norm, scale] = over(x, false, weighted);
    CALL(RmsNorm, a, g, eps, out, rstd);
    expect("aclnnRmsNorm", out, norm);
    expect("aclnnRmsNorm", rstd, scale);
    const Numbers added = filled(rows * n, [&](size_t i) { return x[i] + y[i]; });
    const auto [both, its_scale] = over(added, false, weighted);
    CALL(AddRmsNorm, a, b, g, eps, out, rstd, sum);
    expect("aclnnAddRmsNorm", out, both);
    expect("aclnnAddRmsNorm", rstd, its_scale);
    expect("aclnnAddRmsNorm", sum, added, 0);
    CALL(LayerNorm, a, Ints({24}), nullptr, nullptr, eps, out, nullptr, nullptr);
    expect("aclnnLayerNorm", out, over(x, true, plain).first, 8, ones);
    // Rows as two groups of two batches.
    const Array picture({2, 4, 12}, x, dtype), grouped({2, 4, 12}, dtype);
    const Array mean({2, 2}, dtype), deviation({2, 2}, dtype);
    CALL(GroupNorm, picture, nullptr, nullptr, 2, 4, 12, 2, eps, grouped, mean, deviation);
    expect("aclnnGroupNorm", grouped, over(x, true, plain).first, 8, ones);
  }
}

void softened() {
  const size_t rows = 3, n = 10;
  const Numbers x = random_numbers(rows * n), labels = random_numbers(rows * n, 0, 1);
  Numbers soft, log, loss, gradient, terms;
  for (size_t r = 0; r < rows; ++r) {
    double sum = 0, own = 0, size = 0;
    for (size_t i = 0; i < n; ++i) sum += std::exp(x[r * n + i]);
    for (size_t i = 0; i < n; ++i) {
      soft.push_back(std::exp(x[r * n + i]) / sum);
      log.push_back(x[r * n + i] - std::log(sum));
      gradient.push_back(soft.back() - labels[r * n + i]);
      own -= labels[r * n + i] * log.back();
      size += labels[r * n + i] * (std::abs(x[r * n + i]) + std::log(sum));
    }
    loss.push_back(own), terms.push_back(size);
  }
  for (const aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16}) {
    const Array a({3, 10}, x, dtype), out({3, 10}, dtype);
    CALL(Softmax, a, 1, out);
    expect("aclnnSoftmax", out, soft);
    CALL(LogSoftmax, a, 1, out);
    expect("aclnnLogSoftmax", out, log, 4, Numbers(rows * n, 2));
  }
  const Array a({3, 10}, x), target({3, 10}, labels), its_loss({3}), backprop({3, 10});
  CALL(SoftmaxCrossEntropyWithLogits, a, target, its_loss, backprop);
  expect("aclnnSoftmaxCrossEntropyWithLogits", its_loss, loss, 4, terms);
  expect("aclnnSoftmaxCrossEntropyWithLogits", backprop, gradient, 4, Numbers(rows * n, 1));
}

void gated() {
  const Numbers x = random_numbers(2 * 3 * 8);
  const auto first = [&](size_t i) { return x[i / 4 * 8 + i % 4]; };
  const auto second = [&](size_t i) { return x[i / 4 * 8 + 4 + i % 4]; };
  const auto gelu = [](double v) { return v * std::erfc(-v / std::sqrt(2)) / 2; };
  const Numbers scale = filled(24, [&](size_t i) { return std::abs(first(i) * second(i)); });
  const Array a({2, 3, 8}, x), out({2, 3, 4}), active({2, 3, 4});
  CALL(SwiGlu, a, 2, out);
  expect("aclnnSwiGlu", out,
         filled(24, [&](size_t i) { return first(i) * sigmoid(first(i)) * second(i); }));
  CALL(GeGluV3, a, 2, 0, true, out, active);
  expect("aclnnGeGluV3", out, filled(24, [&](size_t i) { return gelu(first(i)) * second(i); }), 4,
         scale);
  CALL(GeGluV3, a, 2, 1, false, out, active);
  expect("aclnnGeGluV3", active,
         filled(24,
                [&](size_t i) {
                  const double v = second(i), t = std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v);
                  return v * sigmoid(2 * t);
                }),
         8, filled(24, [&](size_t i) { return std::abs(second(i)); }));
}

void rotated() {
  const size_t n = 8, count = 2 * 3 * n;
  const Numbers x = random_numbers(count), cos = random_numbers(count), sin = random_numbers(count);
  // Where the partner of place i is, its sign, and where the value itself comes from.
  struct Partner {
    size_t partner;
    double sign;
    size_t own;
  };
  const std::function<Partner(size_t)> modes[] = {
      [](size_t i) { return Partner{i ^ 4, i < 4 ? -1.0 : 1.0, i}; },
      [](size_t i) { return Partner{i ^ 1, i % 2 == 0 ? -1.0 : 1.0, i}; },
      [](size_t i) { return Partner{i ^ 2, i % 4 < 2 ? -1.0 : 1.0, i}; },
      [](size_t i) {
        const size_t own = i < 4 ? 2 * i : 2 * (i - 4) + 1;
        return Partner{own ^ 1, i < 4 ? -1.0 : 1.0, own};
      }};
  for (const aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16}) {
    const Array a({2, 3, 1, 8}, x, dtype), c({2, 3, 1, 8}, cos, dtype), s({2, 3, 1, 8}, sin, dtype);
    const Array out({2, 3, 1, 8}, dtype);
    for (int64_t mode = 0; mode < 4; ++mode) {
      CALL(RotaryPositionEmbedding, a, c, s, mode, out);
      Numbers value, terms;
      for (size_t i = 0; i < count; ++i) {
        const Partner at = modes[mode](i % n);
        const double p = x[i / n * n + at.own] * cos[i];
        const double q = at.sign * x[i / n * n + at.partner] * sin[i];
        value.push_back(p + q), terms.push_back(std::abs(p) + std::abs(q));
      }
      expect("aclnnRotaryPositionEmbedding", out, value, 1, terms);
    }
  }
}

// Four heads of queries share two of keys; some keys are far below by pse.
void attended() {
  const int64_t batch = 2, sq = 3, sk = 5, heads = 4, shared = 2, d = 8;
  const double scale = 1 / std::sqrt(8.0);
  const Numbers q = random_numbers(batch * sq * heads * d),
                k = random_numbers(batch * sk * shared * d);
  const Numbers v = random_numbers(batch * sk * shared * d);
  Numbers pse = random_numbers(batch * heads * sq * sk);
  for (size_t i = 0; i < pse.size(); i += 4) pse[i] = -10000;
  Numbers out, lse;
  for (int64_t i = 0; i < batch * sq * heads; ++i) {
    const int64_t b = i / (sq * heads), row = i / heads % sq, head = i % heads, key = head / 2;
    Numbers s;
    for (int64_t j = 0; j < sk; ++j) {
      double dot = 0;
      for (int64_t e = 0; e < d; ++e)
        dot += q[static_cast<size_t>(i * d + e)] *
               k[static_cast<size_t>(((b * sk + j) * shared + key) * d + e)];
      s.push_back(dot * scale + pse[static_cast<size_t>(((b * heads + head) * sq + row) * sk + j)]);
    }
    const double most = *std::max_element(s.begin(), s.end());
    double total = 0;
    for (const double value : s) total += std::exp(value - most);
    for (int64_t e = 0; e < d; ++e) {
      double sum = 0;
      for (int64_t j = 0; j < sk; ++j)
        sum += std::exp(s[static_cast<size_t>(j)] - most) / total *
               v[static_cast<size_t>(((b * sk + j) * shared + key) * d + e)];
      out.push_back(sum);
    }
  }
  for (const aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16}) {
    const Array query({batch, sq, heads, d}, q, dtype), bias({batch, heads, sq, sk}, pse, dtype);
    Array key({batch, sk, shared, d}, k, dtype), value({batch, sk, shared, d}, v, dtype);
    const Array result({batch, sq, heads, d}, dtype);
    const aclTensor *its_key = key.give(), *its_value = value.give();
    aclTensorList *keys = aclCreateTensorList(&its_key, 1),
                  *values = aclCreateTensorList(&its_value, 1);
    char layout[] = "BSND";
    CALL(FusedInferAttentionScoreV2, query, keys, values, bias, nullptr, nullptr, nullptr, nullptr,
         nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
         nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, heads, scale, 65535, 65535, layout,
         shared, 0, 0, 0, 0, false, 0, 0, result, nullptr);
    aclDestroyTensorList(keys);
    aclDestroyTensorList(values);
    // exp amplifies the distance between scores, which is below 8 here.
    expect("aclnnFusedInferAttentionScoreV2", result, out, 16, Numbers(out.size(), 2));
  }
}

// Two tokens of one sequence, one head: S = S exp(g); S += beta (v - S k) kᵀ; out = S q scale.
void remembered() {
  const size_t dk = 4, dv = 3;
  const Numbers q = random_numbers(2 * dk), k = random_numbers(2 * dk, -1, 1);
  const Numbers v = random_numbers(2 * dv), beta = {0.5, 0.25}, g = {-0.5, -0.25};
  const Numbers start = random_numbers(dv * dk);
  Numbers s = start, out, states(3 * dv * dk, 0);
  std::copy(start.begin(), start.end(), states.begin() + static_cast<long>(dv * dk));
  Numbers expected_states = states;
  for (size_t t = 0; t < 2; ++t) {
    for (double& x : s) x *= std::exp(g[t]);
    for (size_t i = 0; i < dv; ++i) {
      double miss = v[t * dv + i], sum = 0;
      for (size_t j = 0; j < dk; ++j) miss -= s[i * dk + j] * k[t * dk + j];
      for (size_t j = 0; j < dk; ++j) s[i * dk + j] += beta[t] * miss * k[t * dk + j];
      for (size_t j = 0; j < dk; ++j) sum += s[i * dk + j] * q[t * dk + j] * 0.5;
      out.push_back(sum);
    }
    std::copy(s.begin(), s.end(), expected_states.begin() + static_cast<long>((1 + t) * dv * dk));
  }
  const Array query({2, 1, 4}, q), key({2, 1, 4}, k), value({2, 1, 3}, v), rate({2, 1}, beta);
  const Array state({3, 1, 3, 4}, states), lengths({1}, {2}, ACL_INT32), decay({2, 1}, g);
  const Array places({2}, {1, 2}, ACL_INT32), result({2, 1, 3});
  CALL(RecurrentGatedDeltaRule, query, key, value, rate, state, lengths, places, decay, nullptr,
       nullptr, 0.5f, result);
  expect("aclnnRecurrentGatedDeltaRule", result, out, 8, Numbers(out.size(), 8));
  expect("aclnnRecurrentGatedDeltaRule", state, expected_states, 8,
         Numbers(expected_states.size(), 8));
}

}  // namespace

void layers() {
  normalised();
  softened();
  gated();
  rotated();
  attended();
  remembered();
}
