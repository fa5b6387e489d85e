// SPDX-License-Identifier: Apache-2.0
// Padding by type: paddings has a pair for each dim, from the first on.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

Ints pairs_of(const Tensor& x, const Tensor& paddings) {
  Ints pairs = numbers_in(paddings, "paddings");
  require(pairs.size() == 2 * static_cast<size_t>(x.dim()),
          "paddings must have a pair for each dim of x, whose shape is ", x.sizes(), ", but has ",
          pairs.size(), " numbers");
  return pairs;
}

Tensor padded(const Tensor& x, const Tensor& paddings, const at::Scalar& value) {
  const Ints pairs = pairs_of(x, paddings);
  Ints last_first;
  for (size_t i = pairs.size(); i > 0; i -= 2) {
    last_first.insert(last_first.end(), {pairs[i - 2], pairs[i - 1]});
  }
  return at::constant_pad_nd(x, last_first, value);
}

void pad_by_type(Tensor x, Tensor paddings, Out out) { out = padded(x, paddings, 0); }

// ---- with elements of x: the edge again, or mirrored at it ----

enum class Border { edge, reflect };

Border border_of(const Text& mode) {
  require(mode == "edge" || mode == "reflect" || mode == "REFLECT",
          "mode must be edge or reflect, but is ", mode);
  return mode == "edge" ? Border::edge : Border::reflect;
}

// The places among the n of x that the before + n + after of the result come from.
Tensor sources(int64_t n, int64_t before, int64_t after, Border border) {
  const int64_t most = border == Border::edge ? (int64_t{1} << 40) : n - 1;
  require(n > 0 && before >= 0 && after >= 0 && before <= most && after <= most,
          "paddings must be from 0 to ", most, " where x has ", n, ", but are ", before, " and ",
          after);
  const Tensor place = at::arange(-before, n + after, at::kLong);
  if (border == Border::edge) return place.clamp(0, n - 1);
  return (n - 1) - ((n - 1) - place.abs()).abs();
}

Tensor bordered(const Tensor& x, const Tensor& paddings, Border border) {
  const Ints pairs = pairs_of(x, paddings);
  Tensor y = x;
  for (int64_t dim = 0; dim < x.dim(); ++dim) {
    const auto at = 2 * static_cast<size_t>(dim);
    if (pairs[at] == 0 && pairs[at + 1] == 0) continue;
    y = y.index_select(dim, sources(x.size(dim), pairs[at], pairs[at + 1], border));
  }
  return y;
}

void pad_v3(Tensor x, Tensor paddings, Tensor constant_values, Text mode, bool paddings_contiguous,
            Out out) {
  require(paddings_contiguous, "paddings_contiguous must be true");
  if (mode != "constant") {
    out = bordered(x, paddings, border_of(mode));
  } else if (!constant_values.defined()) {
    out = padded(x, paddings, 0);
  } else {
    need_data(constant_values);
    require(constant_values.numel() == 1, "constant_values must have one element, but has ",
            constant_values.numel());
    out = padded(x, paddings, constant_values.item());
  }
}

void mirror_pad(Tensor x, Tensor paddings, Out out, Text mode) {
  out = bordered(x, paddings, border_of(mode));
}

// Each element of x gets the gradients of all its copies.
void pad_v3_grad(Tensor gradient, Tensor paddings, Out out, Text mode, bool paddings_contiguous) {
  require(paddings_contiguous, "paddings_contiguous must be true");
  const Border border = border_of(mode);
  const Ints pairs = pairs_of(gradient, paddings);
  Tensor g = at_least_float(gradient);
  for (int64_t dim = 0; dim < gradient.dim(); ++dim) {
    const int64_t before = pairs[2 * static_cast<size_t>(dim)];
    const int64_t after = pairs[2 * static_cast<size_t>(dim) + 1];
    if (before == 0 && after == 0) continue;
    const int64_t n = gradient.size(dim) - before - after;
    const Tensor from = sources(n, before, after, border);
    Ints shape = g.sizes().vec();
    shape[static_cast<size_t>(dim)] = n;
    g = at::zeros(shape, g.options()).index_add(dim, from, g);
  }
  out = g;
}

}  // namespace

const Composite by_type_padding_composites[] = {
    ENTRY(pad_by_type), ENTRY(pad_v3), ENTRY(mirror_pad), ENTRY(pad_v3_grad), {},
};

}  // namespace openaclnn::aten
