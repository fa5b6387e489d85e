// SPDX-License-Identifier: Apache-2.0
// Products of matrices in equal and mixed dtypes, with quantised weights, and convolutions.
#include "aclnnop/aclnn_avgpool2d.h"
#include "aclnnop/aclnn_batch_matmul.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_ger.h"
#include "aclnnop/aclnn_grouped_matmul_v3.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_max_pool.h"
#include "aclnnop/aclnn_mm.h"
#include "aclnnop/aclnn_mv.h"
#include "aclnnop/aclnn_trans_matmul_weight.h"
#include "aclnnop/aclnn_triangular_solve.h"
#include "aclnnop/aclnn_weight_quant_batch_matmul_v2.h"
#include "calls.h"

namespace {

struct Sums {
  Numbers value, terms;
};

// Batches of [m, k] times [k, n].
Sums times(const Numbers& a, const Numbers& b, int64_t m, int64_t k, int64_t n, int64_t batch = 1) {
  Sums made;
  for (int64_t i = 0; i < batch * m * n; ++i) {
    const int64_t first = i / (m * n), row = i / n % m, column = i % n;
    double sum = 0, terms = 0;
    for (int64_t j = 0; j < k; ++j) {
      const double term = a[static_cast<size_t>((first * m + row) * k + j)] *
                          b[static_cast<size_t>((first * k + j) * n + column)];
      sum += term;
      terms += std::abs(term);
    }
    made.value.push_back(sum);
    made.terms.push_back(terms);
  }
  return made;
}

void expect(const char* name, const Array& out, const Sums& sums) {
  expect(name, out, sums.value, out.dtype() == ACL_FLOAT ? 4 : 1, sums.terms);
}

void products() {
  const int64_t m = 5, k = 37, n = 6, batch = 3;
  const Numbers a = random_numbers(batch * m * k), b = random_numbers(batch * k * n);
  const Numbers v = random_numbers(k);
  constexpr aclDataType kDtypes[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16};
  for (const aclDataType left : kDtypes) {
    for (const aclDataType right : kDtypes) {
      for (const aclDataType result : kDtypes) {
        const Array x({m, k}, a, left), y({k, n}, b, right), out({m, n}, result);
        CALL(Mm, x, y, out, 2);
        expect("aclnnMm", out, times(a, b, m, k, n));
        CALL(Matmul, x, y, out, 1);
        expect("aclnnMatmul", out, times(a, b, m, k, n));
        const Array xs({batch, m, k}, a, left), ys({batch, k, n}, b, right);
        const Array outs({batch, m, n}, result), column({k}, v, right), row({m}, result);
        CALL(BatchMatMul, xs, ys, outs, 2);
        expect("aclnnBatchMatMul", outs, times(a, b, m, k, n, batch));
        CALL(Mv, x, column, row, 1);
        expect("aclnnMv", row, times(a, v, m, k, 1));
        const Array first({k}, v, left), outer({k, m}, result), second({m}, a, right);
        CALL(Ger, first, second, outer);
        expect("aclnnGer", outer, times(v, a, k, 1, m));
      }
    }
  }
}

// The last two dims need not have the order of memory: the weight is a transposed view.
void quantised() {
  const int64_t m = 3, k = 64, n = 4, group = 32;
  const Numbers x = random_numbers(m * k), scale = random_numbers(k / group * n, 0.0625, 1);
  std::uniform_int_distribution<int> four(-8, 7), eight(-128, 127);
  for (const bool is_four : {false, true}) {
    Numbers q, bytes;  // [n, k] in memory
    for (int64_t i = 0; i < n * k; ++i) q.push_back(is_four ? four(generator) : eight(generator));
    for (size_t i = 0; i < q.size(); i += 2)
      bytes.push_back((static_cast<int>(q[i]) & 15) | (static_cast<int>(q[i + 1]) & 15) << 4);
    Numbers weight;  // [k, n]
    for (int64_t i = 0; i < k * n; ++i) {
      const int64_t row = i / n, column = i % n;
      weight.push_back(q[static_cast<size_t>(column * k + row)] *
                       scale[static_cast<size_t>(column * (k / group) + row / group)]);
    }
    const Array input({m, k}, x, ACL_FLOAT16), out({m, n}, ACL_FLOAT16);
    const Array w({n, k}, {k, n}, {1, k}, 0, is_four ? bytes : q, is_four ? ACL_INT4 : ACL_INT8);
    const Array s({n, k / group}, {k / group, n}, {1, k / group}, 0, scale, ACL_FLOAT16);
    CALL(WeightQuantBatchMatmulV2, input, w, s, nullptr, nullptr, nullptr, nullptr, group, out);
    expect("aclnnWeightQuantBatchMatmulV2", out, times(x, weight, m, k, n));
  }
  // One scale and one offset for each column, and a bias.
  const Numbers q = {-128, 127, 5, -1}, offset = {1, -2}, factor = {0.5, 0.25}, bias = {3, -4};
  const Numbers one = {1, 2};
  const Array input({1, 2}, one, ACL_FLOAT16), w({2, 2}, q, ACL_INT8), s({2}, factor, ACL_FLOAT16);
  const Array o({2}, offset, ACL_FLOAT16), b({2}, bias, ACL_FLOAT16), out({1, 2}, ACL_FLOAT16);
  CALL(WeightQuantBatchMatmulV2, input, w, s, o, nullptr, nullptr, b, 0, out);
  expect(
      "aclnnWeightQuantBatchMatmulV2", out,
      {(q[0] + 1) * 0.5 + 2 * (q[2] + 1) * 0.5 + 3, (q[1] - 2) * 0.25 + 2 * (q[3] - 2) * 0.25 - 4},
      1);
}

void weights() {
  const int64_t m = 4, k = 33, n = 20;
  const Numbers a = random_numbers(m * k), b = random_numbers(k * n);
  uint64_t count = 0;
  must(aclnnCalculateMatmulWeightSizeV2(Ints({k, n}), ACL_FLOAT16, &count) == 0,
       "aclnnCalculateMatmulWeightSizeV2");
  const bool enough = count >= static_cast<uint64_t>(k * n);
  std::printf("aclnnCalculateMatmulWeightSizeV2 %s 0.00 0\n", enough ? "good" : "WRONG");
  failures += !enough;
  uint64_t tiles = 0;
  must(aclnnCalculateMatmulWeightSize(Ints({k, n}), &tiles) == 0, "aclnnCalculateMatmulWeightSize");
  const bool whole = tiles == 48 * 32;
  std::printf("aclnnCalculateMatmulWeightSize %s 0.00 0\n", whole ? "good" : "WRONG");
  failures += !whole;
  const Array x({m, k}, a, ACL_FLOAT16), w({k, n}, b, ACL_FLOAT16), out({m, n});
  CALL(TransMatmulWeight, w);
  CALL(Mm, x, w, out, 2);
  expect("aclnnTransMatmulWeight", out, times(a, b, m, k, n));
  Array x1({2, 3}, random_numbers(6)), x2({1, 3}, random_numbers(3));
  Array w1({3, 2}, random_numbers(6)), w2({3, 4}, random_numbers(12)), y1({2, 2}), y2({1, 4});
  const Sums first = times(x1.read(), w1.read(), 2, 3, 2);
  const Sums second = times(x2.read(), w2.read(), 1, 3, 4);
  const aclTensor *xs[] = {x1.give(), x2.give()}, *ws[] = {w1.give(), w2.give()};
  const aclTensor* ys[] = {y1.give(), y2.give()};
  aclTensorList *from = aclCreateTensorList(xs, 2), *with = aclCreateTensorList(ws, 2);
  aclTensorList* to = aclCreateTensorList(ys, 2);
  CALL(GroupedMatmulV3, from, with, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, 0, -1,
       to);
  for (aclTensorList* list : {from, with, to}) aclDestroyTensorList(list);
  expect("aclnnGroupedMatmulV3", y1, first);
  expect("aclnnGroupedMatmulV3", y2, second);
}

// x with a x = b, where a is lower triangular.
void solved() {
  const int64_t n = 4;
  Numbers a = random_numbers(n * n), x = random_numbers(n * 2);
  for (int64_t i = 0; i < n; ++i) {
    a[static_cast<size_t>(i * n + i)] = 2;
    for (int64_t j = i + 1; j < n; ++j) a[static_cast<size_t>(i * n + j)] = 0;
  }
  const Numbers b = times(a, x, n, n, 2).value;
  for (const aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16}) {
    const Array matrix({n, n}, a, dtype), right({n, 2}, b), out({n, 2}), copy({n, n});
    CALL(TriangularSolve, right, matrix, false, false, false, out, copy);
    expect("aclnnTriangularSolve", out, x, 64, Numbers(x.size(), 2));
  }
}

// One picture of c channels, [c, h, w], with weights [o, c, 3, 3], strides of 2 and padding of 1.
void convolved() {
  const int64_t c = 3, o = 4, h = 7, w = 6, oh = 4, ow = 3;
  const Numbers x = random_numbers(c * h * w), weight = random_numbers(o * c * 9);
  Sums sums;
  for (int64_t i = 0; i < o * oh * ow; ++i) {
    const int64_t to = i / (oh * ow), row = i / ow % oh, column = i % ow;
    double sum = 0, terms = 0;
    for (int64_t j = 0; j < c * 9; ++j) {
      const int64_t y = 2 * row - 1 + j / 3 % 3, z = 2 * column - 1 + j % 3;
      if (y < 0 || y >= h || z < 0 || z >= w) continue;
      const double term = x[static_cast<size_t>((j / 9 * h + y) * w + z)] *
                          weight[static_cast<size_t>(to * c * 9 + j)];
      sum += term, terms += std::abs(term);
    }
    sums.value.push_back(sum), sums.terms.push_back(terms);
  }
  for (const aclDataType dtype : {ACL_FLOAT, ACL_FLOAT16}) {
    const Array input({1, c, h, w}, x), kernel({o, c, 3, 3}, weight, dtype), out({1, o, oh, ow});
    CALL(Convolution, input, kernel, nullptr, Ints({2, 2}), Ints({1, 1}), Ints({1, 1}), false,
         Ints({0, 0}), 1, out, 1);
    expect("aclnnConvolution", out, sums);
  }
  // Transposed, in one dim: [1, 2, 3] with weights [2, 1, 2], steps of 2.
  const Array input({1, 2, 3}, {1, 2, 3, 4, 5, 6}), kernel({2, 1, 2}, {1, 10, 100, 1000});
  const Array out({1, 1, 6});
  CALL(Convolution, input, kernel, nullptr, Ints({2}), Ints({0}), Ints({1}), true, Ints({0}), 1,
       out, 0);
  expect("aclnnConvolution", out, {401, 4010, 502, 5020, 603, 6030}, 0);
}

void pooled() {
  const Numbers x = random_numbers(2 * 5 * 4);
  const Array input({1, 2, 5, 4}, x), mean({1, 2, 3, 2}), most({1, 2, 3, 2}), wider({1, 2, 3, 3});
  const auto window = [&](int64_t channel, int64_t row, int64_t column, int64_t up, int64_t left) {
    Numbers seen;
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t y = 2 * row - up + i / 2, z = 2 * column - left + i % 2;
      if (y >= 0 && y < 5 && z >= 0 && z < 4)
        seen.push_back(x[static_cast<size_t>((channel * 5 + y) * 4 + z)]);
    }
    return seen;
  };
  Numbers means, largest, padded;
  for (int64_t i = 0; i < 12; ++i) {
    const Numbers seen = window(i / 6, i / 2 % 3, i % 2, 1, 0);
    means.push_back(std::accumulate(seen.begin(), seen.end(), 0.0) / 4);
    largest.push_back(*std::max_element(seen.begin(), seen.end()));
  }
  for (int64_t i = 0; i < 18; ++i) {
    const Numbers seen = window(i / 9, i / 3 % 3, i % 3, 1, 1);
    padded.push_back(*std::max_element(seen.begin(), seen.end()));
  }
  CALL(AvgPool2d, input, Ints({2, 2}), Ints({2, 2}), Ints({1, 0}), false, true, 0, 0, mean);
  expect("aclnnAvgPool2d", mean, means, 0);
  CALL(MaxPool, input, Ints({2, 2}), Ints({2, 2}), 0, Ints({1, 0, 0, 0}), Ints({1, 1}), 0, most);
  expect("aclnnMaxPool", most, largest, 0);
  CALL(MaxPool, input, Ints({2, 2}), Ints({2, 2}), 0, Ints({1, 1}), Ints({1, 1}), 0, wider);
  expect("aclnnMaxPool", wider, padded, 0);
}

}  // namespace

void matrices() {
  products();
  quantised();
  weights();
  solved();
  convolved();
  pooled();
}
