// SPDX-License-Identifier: Apache-2.0
// How results reach the caller's tensors: casts, overlaps, and shapes that the data decide.
#include <algorithm>
#include <string>
#include <utility>

#include "core/base/object.h"
#include "core/runtime/stream_library.h"
#include "core/torch/aten/call.h"

namespace openaclnn::aten {

// Equal dims in the same order, ignoring size-1 dims.
static bool same_but_for_ones(c10::IntArrayRef a, c10::IntArrayRef b) {
  size_t i = 0, k = 0;
  for (;; ++i, ++k) {
    while (i < a.size() && a[i] == 1) ++i;
    while (k < b.size() && b[k] == 1) ++k;
    if (i == a.size() || k == b.size()) return i == a.size() && k == b.size();
    if (a[i] != b[k]) return false;
  }
}

void check_result(const Tensor& out, const Tensor& result, const char* name) {
  if (!out.defined() || !result.defined()) return;
  const bool both_empty = out.numel() == 0 && result.numel() == 0;
  if (!both_empty && !same_but_for_ones(out.sizes(), result.sizes())) {
    throw Refusal(c10::str(name, " must have shape ", result.sizes(), ", but got ", out.sizes()),
                  Reason::wrong_shape);
  }
  if (!c10::canCast(result.scalar_type(), out.scalar_type())) {
    throw Refusal(c10::str(name, " must have a dtype that ", result.scalar_type(),
                           " can be cast to, but got ", out.scalar_type()),
                  Reason::wrong_dtype);
  }
}

Span span_of(const Tensor& tensor) {
  if (!tensor.defined() || tensor.is_meta() || tensor.numel() == 0) return {};
  const auto* first = static_cast<const char*>(tensor.const_data_ptr());
  if (tensor.is_contiguous()) return {first, first + tensor.nbytes()};
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  return {first, first + (last + 1) * static_cast<int64_t>(tensor.element_size())};
}

bool are_disjoint(const Span& a, const Span& b) { return a.end <= b.begin || b.end <= a.begin; }

Tensor copy_if_overlapping(const Tensor& tensor, const Tensor& written) {
  return are_disjoint(tensor, written) ? tensor : tensor.clone();
}

void copy_into(const Tensor& to, const Tensor& from) {
  const bool same = from.sizes() == to.sizes() && from.strides() == to.strides() &&
                    from.element_size() == to.element_size() &&
                    from.const_data_ptr() == to.const_data_ptr();
  to.copy_(same ? from : copy_if_overlapping(from, to));
}

void put(const Tensor& out, const Tensor& result, const char* name) {
  if (!out.defined() || !result.defined()) return;
  check_result(out, result, name);
  if (out.numel() > 0)
    copy_into(out, out.sizes() == result.sizes() ? result : result.reshape(out.sizes()));
}

void leave(const Tensor& out, int64_t first) {
  if (!out.defined() || out.is_meta() || !out.is_contiguous() || first >= out.numel()) return;
  const auto size = static_cast<int64_t>(out.element_size());
  openaclnn_left(static_cast<const char*>(out.const_data_ptr()) + first * size,
                 static_cast<uint64_t>((out.numel() - first) * size));
}

void Sized::operator=(const Tensor& result) const {
  if (!room_.defined()) return;
  if (!room_.is_contiguous())
    throw Refusal("out must be contiguous where the data decide its shape");
  if (result.numel() > room_.numel())
    throw Refusal("out must have room for " + std::to_string(result.numel()) +
                  " elements, but has room for " + std::to_string(room_.numel()));
  const Tensor dense = result.contiguous();
  room_.as_strided(dense.sizes(), dense.strides()).copy_(dense);
  leave(room_, dense.numel());
  // The program may have destroyed the tensor after phase 1, but not its memory.
  const HandlePool<aclTensor>::Hold own(tensors(), handle_);
  if (!own) return;
  own->shape.rank = own->strides.rank = static_cast<int>(dense.dim());
  std::copy(dense.sizes().begin(), dense.sizes().end(), own->shape.at);
  std::copy(dense.strides().begin(), dense.strides().end(), own->strides.at);
}

}  // namespace openaclnn::aten
