// SPDX-License-Identifier: Apache-2.0
// Images and volumes by type: resizing, windows as columns, pooling of volumes, sampling.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// ---- resizing ----

Ints plane_in(const Tensor& size) {
  Ints found = numbers_in(size, "size");
  require(found.size() == 2 && found[0] > 0 && found[1] > 0,
          "size must have a height and a width from 1, but is ", at::IntArrayRef(found));
  return found;
}

// The shape of an image of another size, which is that of y.
Ints resized(const Tensor& x, const Tensor& size, const Out& y, const char* name) {
  check_rank(x, name, 4, 4);
  const Ints plane = plane_in(size);
  check_shape(y.tensor(), "y", {x.size(0), x.size(1), plane[0], plane[1]});
  return y.tensor().sizes().vec();
}

Ints tail_of(at::IntArrayRef shape, size_t count) {
  return shape.slice(shape.size() - count).vec();
}

void resize_nearest(Tensor x, Tensor size, Out y, bool align_corners, bool half_pixel_centers) {
  require(!align_corners, "align_corners must be false");
  const Ints to = tail_of(resized(x, size, y, "x"), 2);
  y = half_pixel_centers ? at::_upsample_nearest_exact2d(x, to) : at::upsample_nearest2d(x, to);
}

void resize_nearest_grad(Tensor gradient, Tensor size, Out y, bool align_corners,
                         bool half_pixel_centers) {
  require(!align_corners, "align_corners must be false");
  const Ints shape = resized(gradient, size, y, "grads");
  const Tensor g = at_least_float(gradient);
  const Ints from = tail_of(g.sizes(), 2);
  y = half_pixel_centers ? at::_upsample_nearest_exact2d_backward(g, from, shape)
                         : at::upsample_nearest2d_backward(g, from, shape);
}

void check_centres(bool align_corners, bool half_pixel_centers) {
  require(align_corners != half_pixel_centers,
          "one of align_corners and half_pixel_centers must be true");
}

void resize_bilinear(Tensor x, Tensor size, Out y, bool align_corners, bool half_pixel_centers) {
  check_centres(align_corners, half_pixel_centers);
  const Ints to = tail_of(resized(x, size, y, "x"), 2);
  y = at::upsample_bilinear2d(at_least_float(x), to, align_corners);
}

void resize_bilinear_grad(Tensor gradient, Tensor original, Out y, bool align_corners,
                          bool half_pixel_centers) {
  check_centres(align_corners, half_pixel_centers);
  check_rank(gradient, "grads", 4, 4);
  check_rank(original, "original_image", 4, 4);
  y = at::upsample_bilinear2d_backward(at_least_float(gradient), tail_of(gradient.sizes(), 2),
                                       original.sizes(), align_corners);
}

// How the positions of a result fall on those of x. A scale of 0 leaves it to the sizes.
struct Resize {
  bool corners, cubic;
  Reals scales;

  Resize(const Text& transformation, const Text& mode, std::optional<double> coefficient,
         Reals given)
      : corners(transformation == "align_corners"),
        cubic(mode == "cubic"),
        scales(std::move(given)) {
    require(corners || transformation == "half_pixel",
            "coordinate_transformation_mode must be half_pixel or align_corners, but is ",
            transformation);
    require(cubic || mode == "linear", "mode must be linear or cubic, but is ", mode);
    const double a = coefficient.value_or(-0.75);
    require(!cubic || std::abs(a + 0.75) < 1e-6, "cubic_coeff_a must be -0.75, but is ", a);
    for (const double scale : scales)
      require(scale <= 0 || scale >= 1e-6, "scales must be 0 or at least 1e-6, but have ", scale);
  }
  size_t dims() const { return cubic ? 2 : 1; }
  std::optional<double> scale(size_t dim) const {
    return dim < scales.size() && scales[dim] > 0 ? std::optional(scales[dim]) : std::nullopt;
  }
};

// A line is an image of height 1.
void resize_by_type(Tensor x, Out y, Ints sizes, Reals scales, Text transformation, Text mode,
                    std::optional<double> coefficient) {
  const Resize r(transformation, mode, coefficient, std::move(scales));
  check_rank(x, "X", 4, 4);
  Ints shape{x.size(0), x.size(1)};
  shape.insert(shape.end(), sizes.begin(), sizes.end());
  require(sizes.size() == r.dims(), "sizes must have ", r.dims(), " numbers, but has ",
          sizes.size());
  check_shape(y.tensor(), "y", shape);
  const Tensor wide = at_least_float(x);
  if (r.cubic) {
    y = at::upsample_bicubic2d(wide, sizes, r.corners, r.scale(0), r.scale(1));
  } else {
    require_shape(x.size(2) == 1, "X must have height 1 for linear, but has shape ", x.sizes());
    y = at::upsample_linear1d(wide.squeeze(2), sizes, r.corners, r.scale(0));
  }
}

// HWNC: grads and y have the dims of the image first, whatever shape y is described with.
void resize_grad_by_type(Tensor gradient, Out y, Ints original_size, Reals scales,
                         Text transformation, Text mode, std::optional<double> coefficient,
                         Text data_format) {
  const Resize r(transformation, mode, coefficient, std::move(scales));
  check_rank(gradient, "grads", 4, 4);
  require(original_size.size() == r.dims() + 2, "original_size must have ", r.dims() + 2,
          " numbers, but has ", original_size.size());
  const int64_t count = count_of(original_size, "original_size");
  require_shape(count == y.tensor().numel(), "y must have ", count, " elements, but has shape ",
                y.tensor().sizes());
  const bool image_first = data_format == "HWNC";
  const Tensor wide = at_least_float(gradient);
  const Tensor g = image_first ? wide.permute({2, 3, 0, 1}) : wide;
  if (!r.cubic) {
    require_shape(g.size(2) == 1, "grads must have height 1 for linear, but has shape ", g.sizes());
    y = at::upsample_linear1d_backward(g.squeeze(2), tail_of(g.sizes(), 1), original_size,
                                       r.corners, r.scale(0));
    return;
  }
  const Tensor dx = at::upsample_bicubic2d_backward(g, tail_of(g.sizes(), 2), original_size,
                                                    r.corners, r.scale(0), r.scale(1));
  y = image_first ? dx.permute({2, 3, 0, 1}).reshape(y.tensor().sizes()) : dx;
}

// ---- windows as columns ----

void unfold_by_type(Tensor x, Out y, Ints ksizes, Ints strides, Ints dilations, Text mode,
                    Ints pads) {
  require(mode == "CALCULATED", "padding_mode must be CALCULATED, but is ", mode);
  require(pads[0] == pads[1] && pads[2] == pads[3],
          "pads must have equal numbers above and below, and left and right, but are ",
          at::IntArrayRef(pads));
  y = at::im2col(x, ksizes, dilations, Ints{pads[0], pads[2]}, strides);
}

void fold_by_type(Tensor x, Tensor size, Out y, Ints kernel, Ints dilation, Ints padding,
                  Ints stride) {
  y = at::col2im(at_least_float(x).flatten(1, 2), plane_in(size), kernel, dilation, padding,
                 stride);
}

// ---- pooling of volumes ----

// The numbers for depth, height and width, of three or of all five dims.
Ints of_volume(const Ints& list, const char* name) {
  require(list.size() == 3 || list.size() == 5, name, " must have 3 or 5 numbers, but has ",
          list.size());
  return {list.end() - 3, list.end()};
}

void check_volume(const Text& format, const Ints& pads) {
  require(format.empty() || format == "NCDHW", "data_format must be NCDHW, but is ", format);
  require(pads.size() == 6, "pads must have 6 numbers, but has ", pads.size());
}

void check_calculated(const Text& padding) {
  require(padding == "CALCULATED", "padding must be CALCULATED, but is ", padding);
}

// pads have what is added before and after each dim; after it, ceil_mode may need more.
void max_pool3d_by_type(Tensor x, Out y, Ints ksize, Ints strides, Text padding, Ints pads,
                        Ints dilation, bool ceil_mode, Text format) {
  check_volume(format, pads);
  check_calculated(padding);
  check_rank(x, "x", 4, 5);
  const Tensor found = std::get<0>(at::max_pool3d_with_indices(
      at_least_float(x), of_volume(ksize, "ksize"), of_volume(strides, "strides"),
      Ints{pads[0], pads[2], pads[4]}, of_volume(dilation, "dilation"), ceil_mode));
  y = x.dim() == 4 && y.tensor().dim() == 5 ? found.unsqueeze(0) : found;
}

// torch_npu sends neither dilation nor ceil_mode: the windows are dense, the mode is that whose
// result has the shape of grads.
void max_pool3d_grad_by_type(Tensor x, Tensor, Tensor gradient, Out y, Ints ksize, Ints strides,
                             Text padding, Ints pads, Text format) {
  check_volume(format, pads);
  check_calculated(padding);
  check_rank(x, "orig_x", 5, 5);
  const Tensor wide = at_least_float(x);
  const Ints k = of_volume(ksize, "ksize"), s = of_volume(strides, "strides");
  const Ints p{pads[0], pads[2], pads[4]}, dense{1, 1, 1};
  for (const bool ceil : {false, true}) {
    const auto [pooled, places] = at::max_pool3d_with_indices(wide, k, s, p, dense, ceil);
    if (pooled.sizes() != gradient.sizes()) continue;
    y = at::max_pool3d_with_indices_backward(at_least_float(gradient), wide, k, s, p, dense, ceil,
                                             places);
    return;
  }
  require_shape(false, "grads must have the shape of orig_x pooled without dilation, but has ",
                gradient.sizes());
}

std::optional<int64_t> unless_zero(std::optional<int64_t> given) {
  return given.value_or(0) == 0 ? std::nullopt : given;
}

void avg_pool3d_by_type(Tensor x, Out y, Ints ksize, Ints strides, Ints pads, bool ceil_mode,
                        bool include, std::optional<int64_t> divide, Text format) {
  check_volume(format, pads);
  y = at::avg_pool3d(at_least_float(x), of_volume(ksize, "ksize"), of_volume(strides, "strides"),
                     Ints{pads[0], pads[2], pads[4]}, ceil_mode, include, unless_zero(divide));
}

// pads are those of height, width and depth here. ATen trusts the shape of the gradient.
void avg_pool3d_grad_by_type(Tensor shape, Tensor gradient, Out y, Ints ksize, Ints strides,
                             Ints pads, bool ceil_mode, bool include, std::optional<int64_t> divide,
                             Text format) {
  check_volume(format, pads);
  check_shape(y.tensor(), "y", numbers_in(shape, "orig_input_shape"));
  const Ints k = of_volume(ksize, "ksize"), s = of_volume(strides, "strides");
  const Ints p{pads[4], pads[0], pads[2]};
  const Tensor g = at_least_float(gradient);
  const Tensor like = at::empty(y.tensor().sizes(), g.options().device(at::kMeta));
  check_shape(gradient, "grads", at::avg_pool3d(like, k, s, p, ceil_mode).sizes());
  y = at::avg_pool3d_backward(g, at::empty(like.sizes(), g.options()), k, s, p, ceil_mode, include,
                              unless_zero(divide));
}

// ---- sampling ----

int64_t place_of(const Text& word, const char* name, std::initializer_list<const char*> words) {
  int64_t at = 0;
  for (const char* one : words) {
    if (word == one) return at;
    ++at;
  }
  throw Refusal(c10::str(name, " must be ", at::ArrayRef<const char*>(words), ", but is ", word));
}

std::pair<int64_t, int64_t> sampling_of(const Text& mode, const Text& padding) {
  return {place_of(mode, "interpolation_mode", {"bilinear", "nearest", "bicubic"}),
          place_of(padding, "padding_mode", {"zeros", "border", "reflection"})};
}

void grid_sample_by_type(Tensor x, Tensor grid, Out y, Text mode, Text padding, bool corners) {
  const auto [m, p] = sampling_of(mode, padding);
  y = at::grid_sampler_2d(at_least_float(x), at_least_float(grid), m, p, corners);
}

void grid_sample_grad_by_type(Tensor gradient, Tensor x, Tensor grid, Out dx, Out dgrid, Text mode,
                              Text padding, bool corners) {
  const auto [m, p] = sampling_of(mode, padding);
  const auto [of_x, of_grid] =
      at::grid_sampler_2d_backward(at_least_float(gradient), at_least_float(x),
                                   at_least_float(grid), m, p, corners, {true, true});
  dx = of_x;
  dgrid = of_grid;
}

}  // namespace

const Composite by_type_image_composites[] = {
    ENTRY(resize_nearest),
    ENTRY(resize_nearest_grad),
    ENTRY(resize_bilinear),
    ENTRY(resize_bilinear_grad),
    ENTRY(resize_by_type),
    ENTRY(resize_grad_by_type),
    ENTRY(unfold_by_type),
    ENTRY(fold_by_type),
    ENTRY(max_pool3d_by_type),
    ENTRY(max_pool3d_grad_by_type),
    ENTRY(avg_pool3d_by_type),
    ENTRY(avg_pool3d_grad_by_type),
    ENTRY(grid_sample_by_type),
    ENTRY(grid_sample_grad_by_type),
    {},
};

}  // namespace openaclnn::aten
