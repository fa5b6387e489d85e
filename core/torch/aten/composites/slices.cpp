// SPDX-License-Identifier: Apache-2.0
// Parts of tensors: slices and strides.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// From starts to ends by steps along axes (all of them from 0 on if empty), as far as x reaches.
// What is below -N begins at 0.
void slice_v2(Tensor self, Ints starts, Ints ends, Ints axes, Ints steps, Out out) {
  const size_t count = starts.size();
  require(ends.size() == count && (axes.empty() || axes.size() == count) &&
              (steps.empty() || steps.size() == count),
          "starts, ends, axes and steps must have as many numbers as each other, but have ", count,
          ", ", ends.size(), ", ", axes.size(), " and ", steps.size());
  Tensor y = self;
  for (size_t i = 0; i < count; ++i) {
    const int64_t axis = axes.empty() ? static_cast<int64_t>(i) : axes[i];
    const int64_t step = steps.empty() ? 1 : steps[i];
    require(axis >= -self.dim() && axis < self.dim(), "axes must be dims of self, whose shape is ",
            self.sizes(), ", but has ", axis);
    require(step > 0, "steps must be at least 1, but has ", step);
    const int64_t size = self.size(axis);
    const auto place = [&](int64_t at) {
      return std::clamp<int64_t>(at < 0 ? at + size : at, 0, size);
    };
    const int64_t from = place(starts[i]);
    y = y.slice(axis, from, std::max(from, place(ends[i])), step);
  }
  out = y;
}

// Along one dim like Python's x[begin:end:stride], with begin or end left out.
Tensor strided(const Tensor& x, int64_t dim, std::optional<int64_t> begin,
               std::optional<int64_t> end, int64_t stride) {
  const int64_t size = x.size(dim), least = stride > 0 ? 0 : -1,
                most = stride > 0 ? size : size - 1;
  const auto place = [&](std::optional<int64_t> at, int64_t missing) {
    return at ? std::clamp(*at < 0 ? *at + size : *at, least, most) : missing;
  };
  const int64_t from = place(begin, stride > 0 ? 0 : size - 1);
  const int64_t to = place(end, stride > 0 ? size : -1);
  if (stride > 0) return x.slice(dim, from, std::max(from, to), stride);
  // The same elements from the last one, turned round.
  const int64_t count = from > to ? (from - to - 1) / -stride + 1 : 0;
  const int64_t last = from + stride * (count - 1);
  return count == 0 ? x.slice(dim, 0, 0) : x.slice(dim, last, from + 1, -stride).flip(dim);
}

// TensorFlow's rules: the terms of Python's x[...], one for each bit of the masks.
void strided_slice(Tensor self, Ints begin, Ints end, Ints strides, int64_t begin_mask,
                   int64_t end_mask, int64_t ellipsis_mask, int64_t new_mask, int64_t shrink_mask,
                   Out out) {
  const size_t count = begin.size();
  require(end.size() == count && strides.size() == count && count < 63,
          "begin, end and strides must have as many numbers as each other, but have ", count, ", ",
          end.size(), " and ", strides.size());
  const auto has = [](int64_t mask, size_t bit) { return (mask >> bit & 1) != 0; };
  int64_t terms = 0, ellipses = 0;  // terms that take a dim of self
  for (size_t i = 0; i < count; ++i) {
    if (has(ellipsis_mask, i))
      ++ellipses;
    else if (!has(new_mask, i))
      ++terms;
    require(strides[i] != 0, "strides must not have 0");
  }
  require(ellipses <= 1, "ellipsisMask must have one bit at most, but has ", ellipses);
  require(terms <= self.dim(), "begin must have a term for each dim of self at most, whose shape ",
          "is ", self.sizes(), ", but has ", terms);
  Tensor y = self;
  int64_t dim = 0;
  for (size_t i = 0; i < count; ++i) {
    if (has(ellipsis_mask, i)) {
      dim += self.dim() - terms;
    } else if (has(new_mask, i)) {
      y = y.unsqueeze(dim++);
    } else if (has(shrink_mask, i)) {
      const int64_t size = y.size(dim), at = begin[i] < 0 ? begin[i] + size : begin[i];
      require(strides[i] > 0, "strides must be above 0 where shrinkAxisMask is set, but has ",
              strides[i]);
      require(at >= 0 && at < size, "begin must be a position of a dim of ", size,
              " where shrinkAxisMask is set, but is ", begin[i]);
      y = y.select(dim, at);
    } else {
      const auto bound = [&](int64_t mask, int64_t at) {
        return has(mask, i) ? std::nullopt : std::optional(at);
      };
      y = strided(y, dim, bound(begin_mask, begin[i]), bound(end_mask, end[i]), strides[i]);
      ++dim;
    }
  }
  out = y;
}

// The type: its positions are tensors.
void strided_slice_by_type(Tensor x, Tensor begin, Tensor end, Tensor strides, int64_t begin_mask,
                           int64_t end_mask, int64_t ellipsis_mask, int64_t new_mask,
                           int64_t shrink_mask, Out out) {
  strided_slice(x, numbers_in(begin, "begin"), numbers_in(end, "end"),
                numbers_in(strides, "strides"), begin_mask, end_mask, ellipsis_mask, new_mask,
                shrink_mask, out);
}

void as_strided(Tensor self, Ints size, Ints stride, Ints offset, Out out) {
  require(size.size() == stride.size(), "size and stride must have as many numbers as each other, ",
          "but have ", size.size(), " and ", stride.size());
  int64_t last = offset[0];
  for (size_t i = 0; i < size.size(); ++i) {
    require(size[i] >= 0 && stride[i] >= 0, "size and stride must be at least 0, but have ",
            size[i], " and ", stride[i]);
    int64_t reach = 0;
    const bool fits =
        !__builtin_mul_overflow(std::max<int64_t>(size[i] - 1, 0), stride[i], &reach) &&
        !__builtin_add_overflow(last, reach, &last);
    require(fits, "size and stride must stay within 63 bits, but are ", at::IntArrayRef(size),
            " and ", at::IntArrayRef(stride));
  }
  count_of(size, "size");
  const Tensor x = self.contiguous();
  require(offset[0] >= 0 && (last < x.numel() || c10::multiply_integers(size) == 0),
          "size, stride and storageOffset must stay within the ", x.numel(), " elements of x, but ",
          "reach from ", offset[0], " to ", last);
  out = c10::multiply_integers(size) == 0 ? at::empty(size, x.options())
                                          : x.as_strided(size, stride, offset[0]);
}

// The type: its numbers are tensors.
void as_strided_by_type(Tensor x, Tensor size, Tensor stride, Tensor offset, Out out) {
  as_strided(x, numbers_in(size, "size"), numbers_in(stride, "stride"), {number_in(offset)}, out);
}

// A part of x, whose elements lie as they are described.
Tensor viewed(const Tensor& x, const Tensor& size, const Tensor& stride, const Tensor& offset,
              const char* name) {
  const Ints sizes = numbers_in(size, "size"), strides = numbers_in(stride, "stride");
  const auto first = number_in(offset);
  require(sizes.size() == strides.size(), name, "Size and ", name,
          "Stride must have as many numbers as each other");
  int64_t last = first;
  count_of(sizes, name);
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t reach = 0;
    require(strides[i] >= 0 && !__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) &&
                !__builtin_add_overflow(last, reach, &last),
            name, "Stride must be at least 0 and stay within 63 bits, but is ",
            at::IntArrayRef(strides));
  }
  const bool empty = c10::multiply_integers(sizes) == 0;
  require(first >= 0 && (empty || last < x.numel()), name, " has ", x.numel(),
          " elements, but its view reaches from ", first, " to ", last);
  return empty ? at::empty(sizes, x.options()) : x.as_strided(sizes, strides, first);
}

// Copies one view into another of the same shape.
void copy_view(const Tensor& dst, const Tensor& dst_size, const Tensor& dst_stride,
               const Tensor& dst_offset, const Tensor& src, const Tensor& src_size,
               const Tensor& src_stride, const Tensor& src_offset) {
  const Tensor to = viewed(dst, dst_size, dst_stride, dst_offset, "dst");
  const Tensor from = viewed(src.contiguous(), src_size, src_stride, src_offset, "src");
  require_shape(to.sizes() == from.sizes(), "dstSize and srcSize must be equal, but are ",
                to.sizes(), " and ", from.sizes());
  to.copy_(from);
}

// Copies dst, and over it the elements of src at one set of strides to those of another.
void view_copy(Tensor dst, Tensor dst_size, Tensor dst_stride, Tensor dst_offset, Tensor src,
               Tensor src_size, Tensor src_stride, Tensor src_offset, Out out) {
  check_result(out.tensor(), dst, "dstOut");
  const Tensor made = dst.clone(at::MemoryFormat::Contiguous);
  copy_view(made, dst_size, dst_stride, dst_offset, src, src_size, src_stride, src_offset);
  out = made;
}

// The result is usually dst itself; torch_npu describes it by the shape of the view then.
void view_copy_by_type(Tensor dst, Tensor dst_size, Tensor dst_stride, Tensor dst_offset,
                       Tensor src, Tensor src_size, Tensor src_stride, Tensor src_offset, Out out) {
  check_given(out.tensor(), "dst");
  if (dst.is_meta() || out.tensor().data_ptr() == dst.data_ptr())
    copy_view(dst, dst_size, dst_stride, dst_offset, copy_if_overlapping(src, dst), src_size,
              src_stride, src_offset);
  else
    view_copy(dst, dst_size, dst_stride, dst_offset, src, src_size, src_stride, src_offset, out);
}

// Two dims: the dims before axis, and from it on.
void flatten(Tensor self, int64_t axis, Out out) {
  require(axis >= -self.dim() && axis <= self.dim(), "axis must be in [", -self.dim(), ", ",
          self.dim(), "], but got ", axis);
  const auto first = static_cast<size_t>(axis < 0 ? axis + self.dim() : axis);
  out = self.reshape({c10::multiply_integers(self.sizes().slice(0, first)),
                      c10::multiply_integers(self.sizes().slice(first))});
}

}  // namespace

const Composite slice_composites[] = {
    ENTRY(slice_v2),
    ENTRY(strided_slice),
    ENTRY(strided_slice_by_type),
    ENTRY(as_strided),
    ENTRY(as_strided_by_type),
    ENTRY(view_copy),
    ENTRY(view_copy_by_type),
    ENTRY(flatten),
    {},
};

}  // namespace openaclnn::aten
