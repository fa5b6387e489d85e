// SPDX-License-Identifier: Apache-2.0
// What composites ask of their arguments before they index a dim, split one or divide by one.
#pragma once

#include <cmath>

#include "core/torch/aten/composites/entry.h"

namespace openaclnn::aten {

// Throws the words as a refusal unless the condition holds.
template <class... Words>
void require(bool holds, const Words&... words) {
  if (!holds) throw Refusal(c10::str(words...));
}

template <class... Words>
void require_shape(bool holds, const Words&... words) {
  if (!holds) throw Refusal(c10::str(words...), Reason::wrong_shape);
}

inline void check_given(const Tensor& tensor, const char* name) {
  if (!tensor.defined()) throw Missing(name);
}

// A reduction that is a word, as ATen counts it.
inline int64_t reduction_of(const Text& word) {
  require(word == "none" || word == "mean" || word == "sum",
          "reduction must be none, mean or sum, but got ", word);
  return word == "none"   ? at::Reduction::None
         : word == "mean" ? at::Reduction::Mean
                          : at::Reduction::Sum;
}

// The numbers of a tensor that stands for a list.
inline Ints numbers_in(const Tensor& tensor, const char* name) {
  check_given(tensor, name);
  need_data(tensor);
  const Tensor wide = tensor.to(at::kLong).contiguous();
  return {wide.const_data_ptr<int64_t>(), wide.const_data_ptr<int64_t>() + wide.numel()};
}

// A list of numbers as a tensor; undefined where it is empty.
inline Tensor list_of(const Ints& numbers) {
  return numbers.empty() ? Tensor() : at::tensor(numbers, at::kLong);
}

inline void check_rank(const Tensor& tensor, const char* name, int64_t low, int64_t high) {
  check_given(tensor, name);
  const int64_t rank = tensor.dim();
  require_shape(rank >= low && rank <= high, name, " must have ", low,
                low == high ? "" : c10::str(" to ", high), " dims, but has shape ", tensor.sizes());
}

inline void check_shape(const Tensor& tensor, const char* name, at::IntArrayRef shape) {
  check_given(tensor, name);
  require_shape(tensor.sizes() == shape, name, " must have shape ", shape, ", but got ",
                tensor.sizes());
}

// A tensor that may be NULL.
inline void check_optional(const Tensor& tensor, const char* name, at::IntArrayRef shape) {
  if (tensor.defined()) check_shape(tensor, name, shape);
}

// The parts of x along a dim whose size divides by their number.
inline Tensors equal_parts(const Tensor& x, int64_t count, int64_t dim, const char* name) {
  check_given(x, name);
  require(-x.dim() <= dim && dim < x.dim(), "dim must be a dim of ", name, ", whose shape is ",
          x.sizes(), ", but got ", dim);
  const int64_t size = x.size(dim);
  require_shape(size % count == 0, name, " must have a size along dim ", dim,
                " that is divisible by ", count, ", but has shape ", x.sizes());
  Tensors parts;
  for (int64_t i = 0; i < count; ++i)
    parts.push_back(x.narrow(dim, i * (size / count), size / count));
  return parts;
}

inline std::pair<Tensor, Tensor> halves(const Tensor& x, int64_t dim, const char* name = "x") {
  const Tensors parts = equal_parts(x, 2, dim, name);
  return {parts[0], parts[1]};
}

// The last dims of x, which are those of gamma.
inline Ints trailing_dims(const Tensor& x, const Tensor& gamma, const char* name = "x") {
  check_given(x, name);
  check_given(gamma, "gamma");
  const int64_t first = x.dim() - gamma.dim();
  const bool fits =
      gamma.dim() > 0 && first >= 0 && x.sizes().slice(static_cast<size_t>(first)) == gamma.sizes();
  require_shape(fits, "gamma must have the last dims of ", name, ", whose shape is ", x.sizes(),
                ", but has shape ", gamma.sizes());
  Ints dims;
  for (int64_t i = first; i < x.dim(); ++i) dims.push_back(i);
  return dims;
}

// The shape of x with the last dims, as many as gamma has, reduced to 1.
inline Ints reduced_shape(const Tensor& x, const Tensor& gamma) {
  Ints shape = x.sizes().vec();
  for (const int64_t dim : trailing_dims(x, gamma)) shape[static_cast<size_t>(dim)] = 1;
  return shape;
}

// The number of elements of a shape that the program gives as numbers.
inline int64_t count_of(const Ints& shape, const char* name) {
  int64_t count = 1;
  for (const int64_t size : shape)
    require(size >= 0 && !__builtin_mul_overflow(count, size, &count), name,
            " must have sizes from 0 whose product fits 63 bits, but is ", at::IntArrayRef(shape));
  return count;
}

// Positions are in [0, count), -1 too where that means none. Nothing is known in phase 1.
inline void check_positions(const Tensor& positions, const char* name, int64_t count,
                            int64_t low = 0) {
  if (positions.is_meta() || positions.numel() == 0) return;
  const auto [least, most] = at::aminmax(positions);
  const auto first = number_in(least), last = number_in(most);
  require(first >= low && last < count, name, " must be in [", low, ", ", count - 1, "], but has ",
          first < low ? first : last);
}

}  // namespace openaclnn::aten
