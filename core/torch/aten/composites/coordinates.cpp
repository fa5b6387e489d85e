// SPDX-License-Identifier: Apache-2.0
// Elements by coordinates: the last dim of indices selects an element, or a slice.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

std::vector<Tensor> coordinates(const Tensor& indices, const Tensor& self, const char* name) {
  const int64_t depth = indices.dim() == 0 ? 0 : indices.size(-1);
  require_shape(depth > 0 && depth <= self.dim(),
                "indices must have a last dim from 1 to the dims of ", name, ", ", self.dim(),
                ", but has shape ", indices.sizes());
  return indices.to(at::kLong).unbind(-1);
}

c10::List<std::optional<Tensor>> listed(const std::vector<Tensor>& places) {
  c10::List<std::optional<Tensor>> list;
  for (const Tensor& place : places) list.push_back(place);
  return list;
}

Ints shape_at(const Tensor& indices, const Tensor& self) {
  Ints shape = indices.sizes().slice(0, static_cast<size_t>(indices.dim() - 1)).vec();
  const auto rest = self.sizes().slice(static_cast<size_t>(indices.size(-1)));
  shape.insert(shape.end(), rest.begin(), rest.end());
  return shape;
}

void check_places(const std::vector<Tensor>& places, const Tensor& self, bool negative = false) {
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t size = self.size(static_cast<int64_t>(i));
    check_positions(places[i], "indices", size, negative ? -size : 0);
  }
}

void gather_nd(Tensor self, Tensor indices, bool negative, Out out) {
  const auto places = coordinates(indices, self, "self");
  check_result(out.tensor(), at::empty(shape_at(indices, self), self.options()), "out");
  check_places(places, self, negative);
  out = at::index(self, listed(places));
}

void scatter_nd(Tensor data, Tensor indices, Tensor updates, Out out) {
  const auto places = coordinates(indices, data, "data");
  check_shape(updates, "updates", shape_at(indices, data));
  check_places(places, data);
  out = at::index_put(data, listed(places), updates.to(data.scalar_type()));
}

// The updates tell the form: indices of rows, or coordinates.
void tf_scatter_add(Tensor self, Tensor indices, Tensor updates) {
  check_rank(self, "varRef", 1, 8);
  Ints rows = indices.sizes().vec();
  rows.insert(rows.end(), self.sizes().begin() + 1, self.sizes().end());
  std::vector<Tensor> places;
  if (updates.sizes() == at::IntArrayRef(rows)) {
    places = {indices.to(at::kLong)};
  } else {
    places = coordinates(indices, self, "varRef");
    check_shape(updates, "updates", shape_at(indices, self));
  }
  check_places(places, self);
  if (self.is_meta()) return;
  const Tensor wide = at_least_float(self);
  copy_into(self,
            at::index_put(wide, listed(places), updates.to(wide.scalar_type()), /*accumulate=*/true)
                .to(self.scalar_type()));
}

// The first dims of self and index are the same batches; index selects along dim.
void gather_v3(Tensor self, int64_t dim, Tensor index, int64_t batch_dims, int64_t, Out out) {
  require(dim >= -self.dim() && dim < self.dim(), "dim must be a dim of self, whose shape is ",
          self.sizes(), ", but got ", dim);
  const int64_t d = at::maybe_wrap_dim(dim, self.dim());
  require(batch_dims <= d && batch_dims <= index.dim() &&
              self.sizes().slice(0, static_cast<size_t>(batch_dims)) ==
                  index.sizes().slice(0, static_cast<size_t>(batch_dims)),
          "self and index must begin with the same ", batch_dims, " batchDims, up to dim ", dim,
          ", but have shapes ", self.sizes(), " and ", index.sizes());
  const Ints batch = self.sizes().slice(0, static_cast<size_t>(batch_dims)).vec();
  const auto outer =
      self.sizes().slice(static_cast<size_t>(batch_dims), static_cast<size_t>(d - batch_dims));
  const auto inner = self.sizes().slice(static_cast<size_t>(d + 1));
  const auto places = index.sizes().slice(static_cast<size_t>(batch_dims));
  Ints shape = batch;
  for (const auto part : {outer, places, inner})
    shape.insert(shape.end(), part.begin(), part.end());
  check_positions(index, "index", self.size(d));
  // [batch, outer, size, inner] at [batch, 1, places, 1].
  const int64_t b = c10::multiply_integers(batch), o = c10::multiply_integers(outer);
  const int64_t p = c10::multiply_integers(places), i = c10::multiply_integers(inner);
  const Tensor at = index.to(at::kLong).reshape({b, 1, p, 1}).expand({b, o, p, i});
  out = at::gather(self.reshape({b, o, self.size(d), i}), 2, at).reshape(shape);
}

}  // namespace

const Composite coordinate_composites[] = {
    ENTRY(gather_nd), ENTRY(scatter_nd), ENTRY(tf_scatter_add), ENTRY(gather_v3), {},
};

}  // namespace openaclnn::aten
