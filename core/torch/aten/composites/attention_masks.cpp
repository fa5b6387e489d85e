// SPDX-License-Identifier: Apache-2.0
// Masks and biases of one batch of attention for inference.
#include "core/torch/aten/composites/attention_inference.h"

namespace openaclnn::aten {
namespace {

// The rows and keys of a mask that may be larger.
Tensor cut(const Tensor& mask, const BatchEntry& at, const char* name) {
  require_shape(mask.size(-2) >= at.rows.first + at.rows.count &&
                    mask.size(-1) >= at.keys.first + at.keys.count,
                name, " must have ", at.rows.first + at.rows.count, " rows and ",
                at.keys.first + at.keys.count, " keys at least, but has shape ", mask.sizes());
  return mask.narrow(-2, at.rows.first, at.rows.count).narrow(-1, at.keys.first, at.keys.count);
}

// [rows, keys] of [S, L], [B, S, L] or [B, 1, S, L], where B may be 1; of one query also [B, L].
Tensor batch_mask(const Tensor& mask, const BatchEntry& at) {
  require_shape(mask.dim() >= 2 && mask.dim() <= 4, "attenMask must have 2 to 4 dims, but has ",
                "shape ", mask.sizes());
  Tensor m = mask;
  if (m.dim() == 2 && at.all_rows == 1 && at.batches > 1 && m.size(0) == at.batches)
    m = m.unsqueeze(1);
  if (m.dim() == 4) {
    require_shape(m.size(1) == 1, "attenMask must have shape [B, 1, S, L], but got ", m.sizes());
    m = m.squeeze(1);
  }
  if (m.dim() == 3) {
    require_shape(m.size(0) == 1 || m.size(0) >= at.batches, "attenMask must have 1 or ",
                  at.batches, " batches, but has shape ", mask.sizes());
    m = m.select(0, m.size(0) == 1 ? 0 : static_cast<int64_t>(at.batch));
  }
  return cut(m, at, "attenMask").unsqueeze(0);
}

// The tokens of a tree: each sees the keys before them, and those of them that its mask says.
Tensor tree_mask(const Inference& a, const BatchEntry& at, int64_t first) {
  const int64_t rows = at.rows.count, keys = at.keys.count;
  require(rows <= keys, "a sequence must have a key for each query in sparseMode 9, but has ", keys,
          " keys and ", rows, " queries");
  Tensor own;
  if (a.mask.dim() == 1) {
    require_shape(first + rows * rows <= a.mask.numel(), "attenMask must have an element for each ",
                  "pair of queries, ", first + rows * rows, ", but has ", a.mask.numel());
    own = a.mask.narrow(0, first, rows * rows).view({rows, rows});
  } else {
    own = batch_mask(a.mask, {at.batch, at.batches, at.all_rows, {0, rows}, {0, rows}}).squeeze(0);
  }
  return at::cat({at::zeros({rows, keys - rows}, own.options()), own}, 1).unsqueeze(0);
}

}  // namespace

void add_mask(const Inference& a, const BatchEntry& at, bool single, int64_t tree, Sequence* to) {
  if (!is_given(a.mask) || (single && a.sparse >= 2 && a.sparse <= 4)) return;
  const int64_t shift = at.keys.count - at.rows.count;
  const auto band = [&](int64_t around) {
    to->low = around - tokens(a.before);
    to->high = around + tokens(a.after);
  };
  switch (a.sparse) {
    case 0:
      if (!single && !a.q_padding.defined() && !a.kv_padding.defined()) band(0);
      [[fallthrough]];
    case 1: to->mask = batch_mask(a.mask, at); break;
    case 2: to->high = 0; break;
    case 3: to->high = shift; break;
    case 4: band(shift); break;
    default: to->mask = tree_mask(a, at, tree); break;
  }
}

void add_bias(const Inference& a, const BatchEntry& at, Sequence* to) {
  if (!is_given(a.pse)) return;
  require_shape(a.pse.dim() == 4 && (a.pse.size(0) == 1 || a.pse.size(0) >= at.batches) &&
                    a.pse.size(1) == a.heads,
                "pseShift must have shape [", at.batches, " or 1, ", a.heads, ", S, L], but got ",
                a.pse.sizes());
  const Tensor own = a.pse.select(0, a.pse.size(0) == 1 ? 0 : static_cast<int64_t>(at.batch));
  to->bias = cut(own, at, "pseShift");
}

}  // namespace openaclnn::aten
