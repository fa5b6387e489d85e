// SPDX-License-Identifier: Apache-2.0
// Features of regions by type (ROIAlign), with their gradient.
#include <algorithm>

#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// What each cell of an axis takes of each pixel: the mean of bilinear samples, (cells, size).
// Samples beyond a pixel outside the image are 0.
Tensor cell_weights(double start, double extent, int64_t cells, int64_t samples, int64_t size) {
  const Tensor weights = at::zeros({cells, size}, at::kFloat);
  auto* weight = data_of<float>(weights);
  const auto share = 1 / static_cast<float>(samples);
  const double step = extent / static_cast<double>(cells * samples);
  for (int64_t i = 0; i < cells * samples; ++i) {
    const double at = start + (static_cast<double>(i) + 0.5) * step;
    if (!(at >= -1 && at <= static_cast<double>(size))) continue;
    const double inside = std::max(at, 0.0);
    const int64_t low = std::min(static_cast<int64_t>(inside), size - 1);
    const bool last = low == size - 1;
    const float part = last ? 0 : static_cast<float>(inside - static_cast<double>(low));
    float* row = weight + i / samples * size;
    row[low] += (1 - part) * share;
    row[last ? low : low + 1] += part * share;
  }
  return weights;
}

struct Regions {
  const Tensor& rois;  // rows of batch, x0, y0, x1, y1
  double scale;
  int64_t rows, columns, samples, end_mode;

  // Calls f(k, batch, weights of rows, weights of columns) for each region.
  template <class F>
  void each(const Ints& image, F f) const {
    check_rank(rois, "rois", 2, 2);
    check_shape(rois, "rois", {rois.size(0), 5});
    require(rows > 0 && columns > 0 && samples >= 0 && samples < 1 << 16,
            "pooled_height and pooled_width must be above 0 and sample_num in [0, 65535], but are ",
            rows, ", ", columns, " and ", samples);
    require(end_mode == 0 || end_mode == 1, "roi_end_mode must be 0 or 1, but is ", end_mode);
    need_data(rois);
    const Tensor r = rois.to(at::kDouble).contiguous();
    const auto* roi = data_of<double>(r);
    for (int64_t k = 0; k < r.size(0); ++k, roi += 5) {
      require(roi[0] >= 0 && roi[0] < static_cast<double>(image[0]), "rois must have batches in [0",
              ", ", image[0] - 1, "], but row ", k, " has ", roi[0]);
      const auto axis = [&](double first, double last, int64_t cells, int64_t size) {
        const double start = first * scale;
        const double extent = end_mode == 1 ? std::max((last + 1) * scale - start, 0.0)
                                            : std::max(last * scale - start, 1.0);
        const double count = std::ceil(extent / static_cast<double>(cells));
        require(count < 1 << 16, "rois must have at most 65535 samples for each cell, but row ", k,
                " reaches from ", first, " to ", last);
        const int64_t taken =
            samples > 0 ? samples : std::max<int64_t>(static_cast<int64_t>(count), 1);
        return cell_weights(start, extent, cells, taken, size);
      };
      f(k, static_cast<int64_t>(roi[0]), axis(roi[2], roi[4], rows, image[2]),
        axis(roi[1], roi[3], columns, image[3]));
    }
  }
};

void roi_align(Tensor features, Tensor rois, Out out, double spatial_scale, int64_t pooled_height,
               int64_t pooled_width, int64_t sample_num, int64_t roi_end_mode) {
  check_rank(features, "features", 4, 4);
  check_shape(out.tensor(), "y", {rois.size(0), features.size(1), pooled_height, pooled_width});
  const Regions regions{rois, spatial_scale, pooled_height, pooled_width, sample_num, roi_end_mode};
  const Tensor x = at_least_float(features), y = at::zeros(out.tensor().sizes(), x.options());
  regions.each(x.sizes().vec(),
               [&](int64_t k, int64_t n, const Tensor& rows, const Tensor& columns) {
                 y[k].copy_(at::matmul(rows, at::matmul(x[n], columns.t())));
               });
  out = y;
}

// Without roi_end_mode it is 1.
void roi_align_grad(Tensor gradient, Tensor rois, Out out, Ints xdiff_shape, double spatial_scale,
                    int64_t pooled_height, int64_t pooled_width, int64_t sample_num,
                    std::optional<int64_t> roi_end_mode) {
  check_shape(out.tensor(), "xdiff", xdiff_shape);
  check_rank(out.tensor(), "xdiff", 4, 4);
  check_shape(gradient, "ydiff", {rois.size(0), xdiff_shape[1], pooled_height, pooled_width});
  const Regions regions{rois,         spatial_scale, pooled_height,
                        pooled_width, sample_num,    roi_end_mode.value_or(1)};
  const Tensor g = at_least_float(gradient), dx = at::zeros(xdiff_shape, g.options());
  regions.each(xdiff_shape, [&](int64_t k, int64_t n, const Tensor& rows, const Tensor& columns) {
    dx[n] += at::matmul(rows.t(), at::matmul(g[k], columns));
  });
  out = dx;
}

}  // namespace

const Composite region_composites[] = {ENTRY(roi_align), ENTRY(roi_align_grad), {}};

}  // namespace openaclnn::aten
