// SPDX-License-Identifier: Apache-2.0
// Antialiased resizing. ATen's kernels trust that every output pixel lies in the input; where a
// scale is given, it says where.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// The centre of the last of n pixels, (n - 1/2) / scale, lies within the input. A scale of 0 means
// n / size, and so does every scale with aligned corners.
void check_scale(const char* name, double scale, int64_t n, int64_t size, bool aligned) {
  const bool given = !aligned && scale > 0;
  const double needed = (static_cast<double>(n) - 0.5) / static_cast<double>(size);
  require(!given || needed < scale, name, " must be above ", needed, " for ", n, " of ", size,
          " pixels, or 0, but got ", scale);
}

void check_scales(const Ints& output, at::IntArrayRef input, bool aligned, double h, double w) {
  require(output.size() == 2 && input.size() == 4, "outputSize must have 2 sizes and the input 4, ",
          "but they have ", output.size(), " and ", input.size());
  check_scale("scalesH", h, output[0], input[2], aligned);
  check_scale("scalesW", w, output[1], input[3], aligned);
}

void upsample_bilinear_aa(Tensor self, Ints output, bool aligned, double h, double w, Out out) {
  check_scales(output, self.sizes(), aligned, h, w);
  out = at::_upsample_bilinear2d_aa(self, output, aligned, h, w);
}

void upsample_bicubic_aa(Tensor self, Ints output, bool aligned, double h, double w, Out out) {
  check_scales(output, self.sizes(), aligned, h, w);
  out = at::_upsample_bicubic2d_aa(self, output, aligned, h, w);
}

void upsample_bilinear_aa_backward(Tensor gradient, Ints output, Ints input, bool aligned, double h,
                                   double w, Out out) {
  check_scales(output, input, aligned, h, w);
  out = at::_upsample_bilinear2d_aa_backward(gradient, output, input, aligned, h, w);
}

void upsample_bicubic_aa_backward(Tensor gradient, Ints output, Ints input, bool aligned, double h,
                                  double w, Out out) {
  check_scales(output, input, aligned, h, w);
  out = at::_upsample_bicubic2d_aa_backward(gradient, output, input, aligned, h, w);
}

}  // namespace

const Composite antialiased_composites[] = {
    ENTRY(upsample_bicubic_aa),
    ENTRY(upsample_bicubic_aa_backward),
    ENTRY(upsample_bilinear_aa),
    ENTRY(upsample_bilinear_aa_backward),
    {},
};

}  // namespace openaclnn::aten
