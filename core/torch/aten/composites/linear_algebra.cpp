// SPDX-License-Identifier: Apache-2.0
// Matrices, norms and distances.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// ATen has no 16-bit floats here.
void triangular_solve(Tensor b, Tensor a, bool upper, bool transpose, bool unit, Out x, Out copy) {
  const at::ScalarType dtype =
      c10::promoteTypes(c10::promoteTypes(a.scalar_type(), b.scalar_type()), at::kFloat);
  const Tensor matrix = (transpose ? a.mT() : a).to(dtype);
  x = at::linalg_solve_triangular(matrix, b.to(dtype), upper != transpose, true, unit);
  copy = a;
}

void svd(Tensor self, bool full, bool vectors, Out s, Out u, Out v) {
  const auto [left, values, right] = at::_linalg_svd(self, full, vectors);
  s = values;
  if (!vectors) return;
  u = left;
  v = right.mH();
}

// mode: 0 reduced, 1 complete, 2 only r.
void qr(Tensor self, int64_t mode, Out q, Out r) {
  constexpr const char* modes[] = {"reduced", "complete", "r"};
  if (mode < 0 || mode > 2)
    throw Refusal("mode must be in [0, 2], but got " + std::to_string(mode));
  const auto [orthogonal, upper] = at::linalg_qr(at_least_float(self), modes[mode]);
  if (mode < 2) q = orthogonal;
  r = upper;
}

// ---- a norm in two steps: the sum of powers, then its root; for infinity, the extreme ----

// torch_npu passes the largest or least 32-bit integer, rounded to float, instead of an infinity.
double power(double p) {
  constexpr double kInfinite = 2147483648.0;
  return std::abs(p) >= kInfinite - 1 ? std::copysign(INFINITY, p) : p;
}

void lp_norm_reduce(Tensor self, Out out, double p, Ints axes, bool keep) {
  const at::OptionalIntArrayRef dims =
      axes.empty() ? at::OptionalIntArrayRef() : at::OptionalIntArrayRef(axes);
  const double exponent = power(p);
  if (std::isinf(exponent)) {
    out = at::linalg_vector_norm(self, exponent, dims, keep);
  } else {
    out = at::sum(at::pow(at::abs(self), exponent), dims, keep);
  }
}

void lp_norm_update(Tensor self, Out out, double p) {
  const double exponent = power(p);
  out = std::isinf(exponent) ? self : at::pow(self, 1 / exponent);
}

// ATen before 2.9 has no mode 0, which leaves the choice to it.
void cdist(Tensor x1, Tensor x2, double p, int64_t mode, Out out) {
  out = at::_cdist_forward(x1, x2, p, mode == 0 ? std::nullopt : std::optional(mode));
}

// ATen's kernel trusts that the gradient has the batch that x1 and x2 broadcast to. Its result has
// that batch, too; `out` may have the one of x1 (torch_npu 2.7).
void cdist_backward(Tensor gradient, Tensor x1, Tensor x2, Tensor distance, double p, Out out) {
  const auto batch = [](const Tensor& x) { return x.sizes().slice(0, x.dim() - 2); };
  const auto broadcast = at::infer_size(batch(x1), batch(x2));
  if (batch(gradient) != at::IntArrayRef(broadcast))
    throw Refusal(c10::str("grad must have the batch ", at::IntArrayRef(broadcast),
                           " that x1 and x2 broadcast to, but has ", batch(gradient)));
  const Tensor made = at::_cdist_backward(gradient.contiguous(), x1.contiguous(), x2.contiguous(),
                                          p, distance.contiguous());
  out = out.tensor().sizes() == x1.sizes() ? made.sum_to_size(x1.sizes()) : made;
}

// The gradient of cdist by its first input. Where that is [..., R, M] and the second [..., C, M],
// torch_npu passes every tensor as [..., R, C, M], and -1 for an infinite p.
void cdist_grad(Tensor gradient, Tensor one, Tensor two, Tensor distance, Out out, double p) {
  const auto same = one.sizes();
  if (one.dim() < 3 || gradient.sizes() != same || two.sizes() != same || distance.sizes() != same)
    throw Refusal(c10::str("grad, x1, x2 and cdist must have one shape of at least 3 dimensions, ",
                           "but got ", gradient.sizes(), ", ", same, ", ", two.sizes(), " and ",
                           distance.sizes()));
  const auto sizes = out.tensor().sizes();
  if (one.numel() == 0) {
    out = at::zeros(sizes, one.options());
    return;
  }
  const auto along = [](const Tensor& all, int64_t dim) {
    return at_least_float(all.select(dim, 0)).contiguous();
  };
  out = at::_cdist_backward(along(gradient, -1), along(one, -2), along(two, -3),
                            p < 0 ? INFINITY : p, along(distance, -1))
            .sum_to_size(sizes);
}

}  // namespace

const Composite linear_algebra_composites[] = {
    ENTRY(triangular_solve),
    ENTRY(svd),
    ENTRY(qr),
    ENTRY(lp_norm_reduce),
    ENTRY(lp_norm_update),
    ENTRY(cdist),
    ENTRY(cdist_backward),
    ENTRY(cdist_grad),
    {},
};

}  // namespace openaclnn::aten
