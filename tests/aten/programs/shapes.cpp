// SPDX-License-Identifier: Apache-2.0
// Making, joining, moving, picking, ordering and summing.
#include <algorithm>

#include "aclnnop/aclnn_arange.h"
#include "aclnnop/aclnn_argmax.h"
#include "aclnnop/aclnn_argsort.h"
#include "aclnnop/aclnn_cat.h"
#include "aclnnop/aclnn_constant_pad_nd.h"
#include "aclnnop/aclnn_cumsum.h"
#include "aclnnop/aclnn_embedding.h"
#include "aclnnop/aclnn_gather_v2.h"
#include "aclnnop/aclnn_im2col.h"
#include "aclnnop/aclnn_index_copy.h"
#include "aclnnop/aclnn_index_fill_tensor.h"
#include "aclnnop/aclnn_index_select.h"
#include "aclnnop/aclnn_mean.h"
#include "aclnnop/aclnn_norm.h"
#include "aclnnop/aclnn_permute.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "aclnnop/aclnn_reflection_pad1d.h"
#include "aclnnop/aclnn_repeat.h"
#include "aclnnop/aclnn_repeat_interleave.h"
#include "aclnnop/aclnn_roll.h"
#include "aclnnop/aclnn_scatter.h"
#include "aclnnop/aclnn_slice.h"
#include "aclnnop/aclnn_sum.h"
#include "aclnnop/aclnn_tril.h"
#include "aclnnop/aclnn_triu.h"
#include "aclnnop/aclnn_upsample_nearest_2d.h"
#include "calls.h"

namespace {

// An array of this shape from its indices.
Numbers made(const Dims& shape, const std::function<double(const Dims&)>& f) {
  Numbers all;
  Dims at(shape.size(), 0);
  for (int64_t i = 0; i < product(shape); ++i) {
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0;) {
      at[d] = rest % shape[d];
      rest /= shape[d];
    }
    all.push_back(f(at));
  }
  return all;
}

double at(const Numbers& x, int64_t columns, int64_t row, int64_t column) {
  return x[static_cast<size_t>(row * columns + column)];
}

void moved() {
  const Numbers x = random_numbers(12), y = random_numbers(6);
  const Array a({3, 4}, x), turned({4, 3}), slice({3, 2}), rolled({3, 4});
  CALL(Permute, a, Ints({1, 0}), turned);
  expect("aclnnPermute", turned, made({4, 3}, [&](const Dims& i) { return at(x, 4, i[1], i[0]); }),
         0);
  CALL(Slice, a, 1, 1, 4, 2, slice);
  expect("aclnnSlice", slice,
         made({3, 2}, [&](const Dims& i) { return at(x, 4, i[0], 1 + 2 * i[1]); }), 0);
  CALL(Roll, a, Ints({1}), Ints({1}), rolled);
  expect("aclnnRoll", rolled,
         made({3, 4}, [&](const Dims& i) { return at(x, 4, i[0], (i[1] + 3) % 4); }), 0);
  Array left({3, 4}, x), right({3, 2}, y);
  const aclTensor* both[] = {left.give(), right.give()};
  aclTensorList* list = aclCreateTensorList(both, 2);
  const Array joined({3, 6});
  CALL(Cat, list, 1, joined);
  aclDestroyTensorList(list);
  expect("aclnnCat", joined,
         made({3, 6},
              [&](const Dims& i) {
                return i[1] < 4 ? at(x, 4, i[0], i[1]) : at(y, 2, i[0], i[1] - 4);
              }),
         0);
  const Array repeated({6, 4}), interleaved({3, 8}), padded({4, 7});
  CALL(Repeat, a, Ints({2, 1}), repeated);
  expect("aclnnRepeat", repeated,
         made({6, 4}, [&](const Dims& i) { return at(x, 4, i[0] % 3, i[1]); }), 0);
  CALL(RepeatInterleaveIntWithDim, a, 2, 1, 8, interleaved);
  expect("aclnnRepeatInterleaveIntWithDim", interleaved,
         made({3, 8}, [&](const Dims& i) { return at(x, 4, i[0], i[1] / 2); }), 0);
  CALL(ConstantPadNd, a, Ints({1, 2, 0, 1}), Scalar(7), padded);
  expect("aclnnConstantPadNd", padded,
         made({4, 7},
              [&](const Dims& i) {
                return i[0] < 3 && i[1] >= 1 && i[1] < 5 ? at(x, 4, i[0], i[1] - 1) : 7;
              }),
         0);
  const Array reflected({3, 7});
  CALL(ReflectionPad1d, a, Ints({2, 1}), reflected);
  const int64_t places[] = {2, 1, 0, 1, 2, 3, 2};
  expect("aclnnReflectionPad1d", reflected,
         made({3, 7}, [&](const Dims& i) { return at(x, 4, i[0], places[i[1]]); }), 0);
  // A view: the first three columns of every second row, from the first element on.
  const Array view({4, 4}, {2, 3}, {8, 1}, 1, random_numbers(16), ACL_FLOAT), copy({3, 2});
  const Numbers storage = view.read();
  CALL(Permute, view, Ints({1, 0}), copy);
  expect("aclnnPermute", copy,
         made({3, 2},
              [&](const Dims& i) { return storage[static_cast<size_t>(8 * i[1] + i[0] + 1)]; }),
         0);
}

void triangles() {
  const Numbers x = random_numbers(16);
  const Array a({4, 4}, x), lower({4, 4}), upper({4, 4}), own({4, 4}, x);
  const auto kept = [&](auto keep) {
    return made({4, 4}, [&](const Dims& i) { return keep(i[0], i[1]) ? at(x, 4, i[0], i[1]) : 0; });
  };
  CALL(Tril, a, 0, lower);
  expect("aclnnTril", lower, kept([](int64_t r, int64_t c) { return c <= r; }), 0);
  CALL(Triu, a, 1, upper);
  expect("aclnnTriu", upper, kept([](int64_t r, int64_t c) { return c >= r + 1; }), 0);
  CALL(InplaceTriu, own, 2);
  expect("aclnnInplaceTriu", own, kept([](int64_t r, int64_t c) { return c >= r + 2; }), 0);
}

void picked() {
  const Numbers x = random_numbers(12), y = random_numbers(8);
  for (const aclDataType dtype : {ACL_INT32, ACL_INT64}) {
    const Array a({3, 4}, x), index({2, 2}, {2, 0, 1, 2}, dtype), out({2, 2, 4});
    CALL(GatherV2, a, 0, index, out);
    const int64_t places[] = {2, 0, 1, 2};
    const Numbers expected =
        made({2, 2, 4}, [&](const Dims& i) { return at(x, 4, places[2 * i[0] + i[1]], i[2]); });
    expect("aclnnGatherV2", out, expected, 0);
    CALL(Embedding, a, index, out);
    expect("aclnnEmbedding", out, expected, 0);
  }
  const Array a({3, 4}, x), pair({2}, {3, 1}, ACL_INT64), columns({3, 2});
  CALL(IndexSelect, a, 1, pair, columns);
  expect("aclnnIndexSelect", columns,
         made({3, 2}, [&](const Dims& i) { return at(x, 4, i[0], i[1] == 0 ? 3 : 1); }), 0);
  const Array own({3, 4}, x), rows({2}, {2, 0}, ACL_INT64), source({2, 4}, y), filled({3, 4}, x);
  CALL(InplaceIndexCopy, own, 0, rows, source);
  expect("aclnnInplaceIndexCopy", own,
         made({3, 4},
              [&](const Dims& i) {
                return i[0] == 1 ? at(x, 4, 1, i[1]) : at(y, 4, i[0] == 2 ? 0 : 1, i[1]);
              }),
         0);
  CALL(InplaceIndexFillTensor, filled, 1, Ints({0, 2}), Scalar(5));
  expect("aclnnInplaceIndexFillTensor", filled,
         made({3, 4}, [&](const Dims& i) { return i[1] % 2 == 0 ? 5 : at(x, 4, i[0], i[1]); }), 0);
  const Array places({1, 4}, {2, 0, 1, 2}, ACL_INT64), scattered({3, 4});
  const Array one({1, 4}, {1, 2, 3, 4});
  CALL(Scatter, a, 0, places, one, 0, scattered);
  Numbers expected = x;
  expected[8] = 1, expected[1] = 2, expected[6] = 3, expected[11] = 4;
  expect("aclnnScatter", scattered, expected, 0);
  const Array picture({1, 1, 2, 2}, {1, 2, 3, 4}), larger({1, 1, 4, 6});
  CALL(UpsampleNearest2d, picture, Ints({4, 6}), larger);
  expect("aclnnUpsampleNearest2d", larger,
         made({1, 1, 4, 6}, [&](const Dims& i) { return 1 + 2 * (i[2] / 2) + i[3] / 3; }), 0);
  const Array wide({1, 2, 4, 4}, random_numbers(32)), patches({1, 8, 4});
  const Numbers w = wide.read();
  CALL(Im2col, wide, Ints({2, 2}), Ints({1, 1}), Ints({0, 0}), Ints({2, 2}), patches);
  expect("aclnnIm2col", patches,
         made({1, 8, 4},
              [&](const Dims& i) {
                const int64_t channel = i[1] / 4, kh = i[1] / 2 % 2, kw = i[1] % 2;
                return w[static_cast<size_t>(channel * 16 + (i[2] / 2 * 2 + kh) * 4 + i[2] % 2 * 2 +
                                             kw)];
              }),
         0);
}

void ordered_and_summed() {
  const Array count({6});
  CALL(Arange, Scalar(1), Scalar(4), Scalar(0.5f), count);
  expect("aclnnArange", count, {1, 1.5, 2, 2.5, 3, 3.5}, 0);
  Numbers x(24);
  std::iota(x.begin(), x.end(), -12.0);  // no two are equal
  std::shuffle(x.begin(), x.end(), generator);
  const Dims shape = {1, 2, 3, 4};
  const Array a(shape, x), most({1, 2, 3}, ACL_INT32), order(shape, ACL_INT64), running(shape);
  Numbers largest, sorted, sums, total, mean, root;
  for (size_t row = 0; row < 6; ++row) {
    const auto* begin = x.data() + 4 * row;
    largest.push_back(static_cast<double>(std::max_element(begin, begin + 4) - begin));
    int places[] = {0, 1, 2, 3};
    std::sort(places, places + 4, [&](int i, int k) { return begin[i] > begin[k]; });
    sorted.insert(sorted.end(), places, places + 4);
    double sum = 0, squares = 0;
    for (int i = 0; i < 4; ++i) {
      sums.push_back(sum += begin[i]);
      squares += begin[i] * begin[i];
    }
    total.push_back(sum), mean.push_back(sum / 4), root.push_back(std::sqrt(squares));
  }
  CALL(ArgMax, a, 3, false, most);
  expect("aclnnArgMax", most, largest, 0);
  CALL(Argsort, a, -1, true, order);
  expect("aclnnArgsort", order, sorted, 0);
  CALL(Cumsum, a, 3, ACL_FLOAT, running);
  expect("aclnnCumsum", running, sums, 0);
  const Array sum({1, 2, 3, 1}), average({1, 2, 3, 1}), norm({1, 2, 3, 1});
  CALL(ReduceSum, a, Ints({3}), true, ACL_FLOAT, sum);
  expect("aclnnReduceSum", sum, total, 0);
  CALL(Mean, a, Ints({3}), true, ACL_FLOAT, average);
  expect("aclnnMean", average, mean, 1);
  CALL(Norm, a, Scalar(2), Ints({3}), true, norm);
  expect("aclnnNorm", norm, root, 1);
  const Array halves({1, 2, 3, 4}, x, ACL_FLOAT16), exact({1, 2, 3, 1});
  CALL(ReduceSum, halves, Ints({3}), true, ACL_FLOAT, exact);
  expect("aclnnReduceSum", exact, total, 0);
}

}  // namespace

void shapes() {
  moved();
  triangles();
  picked();
  ordered_and_summed();
}
