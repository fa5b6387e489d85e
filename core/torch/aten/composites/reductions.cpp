// SPDX-License-Identifier: Apache-2.0
// Reductions over lists of dims, where an empty list means all dims or none; running sums; sums of
// products.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// No dims are all of them, or none where noop is set.
Ints dims_of(const Tensor& x, const Ints& dims, const char* name) {
  for (const int64_t dim : dims)
    require(-std::max<int64_t>(x.dim(), 1) <= dim && dim < std::max<int64_t>(x.dim(), 1), name,
            " must have dims of a tensor of shape ", x.sizes(), ", but has ", dim);
  if (!dims.empty()) return dims;
  Ints all;
  for (int64_t i = 0; i < x.dim(); ++i) all.push_back(i);
  return all;
}

void max_v2(Tensor self, Ints dims, bool keep, bool noop, Out out) {
  out = dims.empty() && noop ? self : at::amax(self, dims_of(self, dims, "dims"), keep);
}

// Means of integers are cut off behind the point.
void mean_v2(Tensor self, Ints dims, bool keep, bool noop, Out out) {
  const bool whole = c10::isIntegralType(self.scalar_type(), true);
  if (dims.empty() && noop) {
    out = self;
    return;
  }
  const Tensor x = whole ? self.to(at::kDouble) : self;
  const Tensor y = at::mean(x, dims_of(self, dims, "dim"), keep);
  const at::ScalarType dtype = out.tensor().scalar_type();
  if (!c10::isIntegralType(dtype, true)) {
    out = y;
    return;
  }
  require(whole, "out must have floating-point numbers where self has, but is ", dtype);
  out = at::nan_to_num(y, 0).to(at::kLong);
}

void reduce_log_sum(Tensor data, Ints axes, bool keep, bool noop, Out out) {
  out = at::log(axes.empty() && noop ? data : data.sum(dims_of(data, axes, "axes"), keep));
}

void var(Tensor self, Ints dims, bool unbiased, bool keep, Out out) {
  out = at::var(self, dims_of(self, dims, "dim"), unbiased, keep);
}

Ints behind_channels(const Tensor& x) {
  check_rank(x, "self", 3, 8);
  Ints dims;
  for (int64_t i = 2; i < x.dim(); ++i) dims.push_back(i);
  return dims;
}

void global_average_pool(Tensor x, Out out) { out = at::mean(x, behind_channels(x), true); }

void global_max_pool(Tensor x, Out out) { out = at::amax(x, behind_channels(x), true); }

// Running sums; exclusive: without the element itself, reverse: from the end.
void cumsum_v2(Tensor self, int64_t dim, bool exclusive, bool reverse, Out out) {
  const int64_t d = at::maybe_wrap_dim(dim, self.dim());
  const at::ScalarType dtype = out.tensor().scalar_type();
  const bool half = has_16_bits(dtype);
  const Tensor x = self.dim() == 0 ? self.unsqueeze(0) : self;
  const Tensor turned = reverse ? x.flip(d) : x;
  Tensor sums = at::cumsum(turned, d, half ? at::kFloat : dtype);
  if (exclusive && x.size(d) > 0)  // a subtraction would keep infinities and rounding errors
    sums = at::cat({at::zeros_like(sums.narrow(d, 0, 1)), sums.narrow(d, 0, x.size(d) - 1)}, d);
  if (reverse) sums = sums.flip(d);
  out = self.dim() == 0 ? sums.squeeze(0) : sums;
}

void inplace_cumprod(Tensor self, at::Scalar dim) {
  copy_into(self, at::cumprod(at_least_float(self), dim.toLong()).to(self.scalar_type()));
}

// ---- products ----

using Number = std::optional<at::Scalar>;  // NULL has a default

void addr_v2(Tensor self, Tensor vec1, Tensor vec2, Number beta, Number alpha, Out out) {
  const at::Scalar one = 1;
  out = at::addr(self, vec1, vec2, beta.value_or(one), alpha.value_or(one));
}

void gemm(Tensor a, Tensor b, Tensor c, double alpha, double beta, int64_t turn_a, int64_t turn_b,
          Out out, int64_t) {
  const Tensor left = turn_a != 0 ? a.t() : a, right = turn_b != 0 ? b.t() : b;
  require_shape(left.size(1) == right.size(0), "op(A) must have as many columns as op(B) has rows,",
                " but they have shapes ", left.sizes(), " and ", right.sizes());
  const at::ScalarType dtype =
      c10::promoteTypes(c10::promoteTypes(a.scalar_type(), b.scalar_type()), c.scalar_type());
  out = at::addmm(c.to(dtype), left.to(dtype), right.to(dtype), beta, alpha);
}

void einsum(Tensors list, Text equation, Out out) {
  for (size_t i = 0; i < list.size(); ++i)
    if (!list[i].defined()) throw missing_element("tensors", i);
  out = at::einsum(equation, list);
}

void qr_some(Tensor self, bool some, Out q, Out r) {
  const auto [orthogonal, upper] =
      at::linalg_qr(at_least_float(self), some ? "reduced" : "complete");
  q = orthogonal;
  r = upper;
}

void pdist_forward(Tensor self, at::Scalar p, Out out) {
  require(!p.isComplex() && p.toDouble() >= 0, "pScalar must be at least 0, but is ", p);
  out = at::_pdist_forward(self.contiguous(), p.toDouble());
}

// ---- bits: 1 where an element is at least 0, little endian, bytes in `size` rows ----

void sign_bits_pack(Tensor self, int64_t size, Out out) {
  const int64_t count = (self.numel() + 7) / 8;
  require(count % size == 0, "size must divide the number of bytes, ", count, ", but is ", size);
  Tensor bits = self >= 0;
  bits = at::constant_pad_nd(bits.to(at::kInt), {0, count * 8 - self.numel()}).reshape({count, 8});
  const Tensor weights =
      at::bitwise_left_shift(at::ones({8}, bits.options()), at::arange(8, bits.options()));
  out = (bits * weights).sum(1).to(at::kByte).reshape({size, count / size});
}

// 1 and -1.
void sign_bits_unpack(Tensor self, int64_t size, int64_t dtype, Out out) {
  require(self.scalar_type() == at::kByte, "self must be UINT8, but is ", self.scalar_type());
  require(self.numel() % size == 0, "size must divide the elements of self, ", self.numel(),
          ", but is ", size);
  require(c10::isFloatingType(static_cast<at::ScalarType>(dtype)),
          "dtype must be FLOAT or FLOAT16, but is ", static_cast<at::ScalarType>(dtype));
  const Tensor shifts = at::arange(8, self.options().dtype(at::kInt));
  const Tensor bits =
      at::bitwise_right_shift(self.to(at::kInt).unsqueeze(1), shifts).bitwise_and(1);
  out = (bits * 2 - 1)
            .to(static_cast<at::ScalarType>(dtype))
            .reshape({size, 8 * (self.numel() / size)});
}

}  // namespace

const Composite reduction_composites[] = {
    ENTRY(max_v2),
    ENTRY(mean_v2),
    ENTRY(reduce_log_sum),
    ENTRY(var),
    ENTRY(global_average_pool),
    ENTRY(global_max_pool),
    ENTRY(cumsum_v2),
    ENTRY(inplace_cumprod),
    ENTRY(addr_v2),
    ENTRY(gemm),
    ENTRY(einsum),
    ENTRY(qr_some),
    ENTRY(pdist_forward),
    ENTRY(sign_bits_pack),
    ENTRY(sign_bits_unpack),
    {},
};

}  // namespace openaclnn::aten
