// SPDX-License-Identifier: Apache-2.0
// Integers of 4 bits: two in a byte, the first in the low half, as dtype INT4, or as the bytes of
// INT32 words. They are packed along the dim whose stride is 1.
#pragma once

#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {

// A tensor of numbers, or one of integers of 4 bits, which ATen cannot index as such.
class Packed {
 public:
  Packed() = default;
  explicit Packed(const Tensor& x) : stored_(x) {
    const bool words = x.scalar_type() == at::kInt;
    four_bits_ = words || x.scalar_type() == at::ScalarType::Int4;
    if (!four_bits_ || x.dim() == 0) return;
    along_ = x.dim() > 1 && x.stride(-2) == 1 && x.stride(-1) != 1 ? -2 : -1;
    if (words)
      stored_ = view_along(x, [](const Tensor& t) { return t.contiguous().view(at::kByte); });
    else
      take_halves(x);
  }

  bool four_bits() const { return four_bits_; }
  const Tensor& stored() const { return stored_; }
  // -1 or -2: bytes of two numbers along that dim; 0: stored one by one.
  int64_t along() const { return along_; }
  int64_t dim() const { return stored_.dim(); }
  int64_t size(int64_t dim) const {
    if (dim >= 0) dim -= stored_.dim();
    return stored_.size(dim) * (dim == along_ ? 2 : 1);
  }
  at::ScalarType dtype() const { return along_ == 0 ? stored_.scalar_type() : at::kChar; }
  Packed operator[](int64_t i) const { return {stored_[i], four_bits_, along_}; }
  Packed transposed() const {
    return {stored_.transpose(-1, -2), four_bits_, along_ == 0 ? 0 : -3 - along_};
  }
  // Rows of a matrix; of one packed along its columns only whole bytes.
  Packed rows(int64_t begin, int64_t end) const {
    if (along_ == -2) return Packed(numbers(), four_bits_, 0).rows(begin, end);
    return {stored_.slice(-2, begin, end), four_bits_, along_};
  }

  // The matrix of tiles (N / C, K / 16, 16, C), the order FRACTAL_NZ, without its padding; other
  // shapes as they are. Dims before the tiles are a stack.
  Packed untiled(int64_t lead, int64_t rows, int64_t columns) const {
    if (dim() != lead + 4 || along_ == -2) return *this;
    const Ints s = stored_.sizes().vec();
    const auto l = static_cast<size_t>(lead);
    Ints shape(s.begin(), s.begin() + lead);
    shape.insert(shape.end(), {s[l + 1] * s[l + 2], s[l] * s[l + 3]});
    const Tensor dense = stored_.movedim(-4, -2).reshape(shape).slice(-2, 0, rows);
    return {dense.slice(-1, 0, along_ == -1 ? (columns + 1) / 2 : columns), four_bits_, along_};
  }

  Tensor numbers() const { return along_ == 0 ? stored_ : view_along(stored_, halves); }

  // The numbers of bytes of two.
  static Tensor halves(const Tensor& x) {
    const Tensor bytes = x.contiguous();
    std::vector<int64_t> sizes = bytes.sizes().vec();
    sizes.back() *= 2;
    const Tensor made = at::empty(sizes, bytes.options().dtype(at::kChar));
    if (bytes.is_meta()) return made;
    const auto* from = bytes.const_data_ptr<uint8_t>();
    auto* to = made.data_ptr<int8_t>();
    for (int64_t i = 0; i < bytes.numel(); ++i) {
      to[2 * i] = static_cast<int8_t>(static_cast<int8_t>(from[i] << 4) >> 4);
      to[2 * i + 1] = static_cast<int8_t>(static_cast<int8_t>(from[i]) >> 4);
    }
    return made;
  }

 private:
  Packed(Tensor stored, bool four_bits, int64_t along)
      : stored_(std::move(stored)), four_bits_(four_bits), along_(along) {}

  template <class F>
  Tensor view_along(const Tensor& x, F f) const {
    return along_ == -2 ? f(x.transpose(-1, -2)).transpose(-1, -2) : f(x);
  }

  // The strides of INT4 count halves of bytes.
  void take_halves(const Tensor& x) {
    Ints sizes = x.sizes().vec(), strides = x.strides().vec();
    const size_t last = sizes.size() + static_cast<size_t>(along_);
    bool whole = sizes[last] % 2 == 0 && strides[last] == 1;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (d == last) continue;
      whole = whole && strides[d] % 2 == 0;
      strides[d] /= 2;
    }
    if (!whole) return take_one_by_one(x);
    sizes[last] /= 2;
    const auto options = x.options().dtype(at::kByte);
    if (x.is_meta() || x.numel() == 0)
      stored_ = at::empty_strided(sizes, strides, options);
    else
      stored_ = at::from_blob(const_cast<void*>(x.const_data_ptr()), sizes, strides, options);
  }

  // Rows that end within a byte.
  void take_one_by_one(const Tensor& x) {
    along_ = 0;
    stored_ = at::empty(x.sizes(), x.options().dtype(at::kChar));
    if (x.is_meta()) return;
    const auto* bytes = static_cast<const uint8_t*>(x.const_data_ptr());
    auto* to = stored_.data_ptr<int8_t>();
    for (int64_t i = 0; i < stored_.numel(); ++i) {
      int64_t place = 0, rest = i;
      for (int64_t d = x.dim(); d-- > 0;) {
        place += rest % x.size(d) * x.stride(d);
        rest /= x.size(d);
      }
      const int half = bytes[place / 2] >> (place % 2 * 4) & 15;
      to[i] = static_cast<int8_t>(half < 8 ? half : half - 16);
    }
  }

  Tensor stored_;
  bool four_bits_ = false;
  int64_t along_ = 0;
};

// Writes integers: INT8, INT4 or words of eight, which the dtype of out says. INT4 with half as
// many columns counts bytes.
inline void put_integers(const Out& out, const Tensor& numbers) {
  const Tensor& to = out.tensor();
  if (!to.defined()) return;
  const at::ScalarType dtype = to.scalar_type();
  if (dtype == at::kChar) {
    out = numbers;
    return;
  }
  require(dtype == at::kInt || dtype == at::ScalarType::Int4,
          "integers of 8 or 4 bits must go to a tensor of INT8, INT4 or INT32, but got ", dtype);
  Ints sizes = numbers.sizes().vec();
  const int64_t in_one = dtype == at::kInt ? 8 : 2;
  require_shape(!sizes.empty() && sizes.back() % in_one == 0,
                "4-bit integers must have a last dim that is divisible by ", in_one,
                ", but have shape ", numbers.sizes());
  const Tensor parts = numbers.reshape({-1, 2}).to(at::kByte);
  const Tensor bytes = parts.select(1, 0).bitwise_and(15).bitwise_or(parts.select(1, 1) * 16);
  sizes.back() /= 2;
  const Tensor packed = bytes.reshape(sizes);
  if (dtype == at::kInt) {
    out = sizes.back() == 0 ? packed.to(at::kInt) : packed.contiguous().view(at::kInt);
    return;
  }
  const bool counts_bytes = to.sizes() == at::IntArrayRef(sizes);
  Ints strides = to.strides().vec();
  bool whole = counts_bytes || strides.back() == 1;
  for (size_t d = 0; d + 1 < strides.size() && !counts_bytes; ++d) {
    whole = whole && strides[d] % 2 == 0;
    strides[d] /= 2;
  }
  if (!counts_bytes)
    require_shape(to.sizes() == numbers.sizes(), "the INT4 output must have shape ",
                  numbers.sizes(), ", but got ", to.sizes());
  require(whole, "the INT4 output must have rows of whole bytes, but has strides ", to.strides());
  if (to.is_meta() || to.numel() == 0) return;
  at::from_blob(to.data_ptr(), sizes, strides, to.options().dtype(at::kByte)).copy_(packed);
}

}  // namespace openaclnn::aten
