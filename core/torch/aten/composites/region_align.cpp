// SPDX-License-Identifier: Apache-2.0
// PooledRegions of images, averaged over bilinear samples in bins: for each region A x B^T, where
// the rows of A and B hold the mean weights of a bin's samples. Samples beyond -1 and the size are
// 0.
#include "core/torch/aten/composites/quantised.h"

namespace openaclnn::aten {
namespace {

struct PooledRegions {
  Ints image;    // [N, C, H, W]
  Tensor boxes;  // [K, 5]: image, x1, y1, x2, y2
  double scale;
  int64_t rows, columns, samples;  // bins; samples along a bin, 0: as many as it has pixels
  bool end_inside = false;         // x2 and y2 are pixels of the region
  bool aligned = false;            // pixels have their centres at .5
  bool any_size = false;           // regions may be smaller than a pixel

  void check(const char* name) const {
    require(rows >= 1 && columns >= 1 && rows <= 1 << 16 && columns <= 1 << 16,
            "pooledHeight and pooledWidth must be from 1 to ", 1 << 16, ", but are ", rows, " and ",
            columns);
    require(samples >= 0 && samples <= 1 << 10, "the samples of a bin must be from 0 to ", 1 << 10,
            ", but are ", samples);
    require(image.size() == 4 && image[2] > 0 && image[3] > 0,
            "images must have 4 dims and pixels, but have shape ", at::IntArrayRef(image));
    check_rank(boxes, name, 2, 2);
    check_real(boxes, name);
    check_shape(boxes, name, {boxes.size(0), 5});
  }
  Ints pooled() const { return {boxes.size(0), image[1], rows, columns}; }

  // [bins, size]: the mean weights of the pixels for each bin from `begin` on.
  Tensor weights(double begin, double length, int64_t bins, int64_t size) const {
    const double bin = length / static_cast<double>(bins);
    require(std::isfinite(begin) && std::isfinite(bin) && bin <= 1 << 16,
            "regions must be finite and their bins at most ", 1 << 16, " pixels long");
    const int64_t count =
        samples > 0 ? samples : std::max<int64_t>(1, static_cast<int64_t>(std::ceil(bin)));
    require(bins * count <= (int64_t{1} << 28) / size,
            "the samples of a region times the pixels of ", "a side must be at most 2^28, but are ",
            bins * count, " and ", size);
    const Tensor number = at::arange(bins * count, at::kDouble);
    const Tensor at = (number + 0.5) * (bin / static_cast<double>(count)) + begin;
    const Tensor inside = (at >= -1).bitwise_and(at <= static_cast<double>(size));
    const Tensor place = at.clamp(0, static_cast<double>(size - 1));
    const Tensor low = place.floor(), share = (place - low) * inside;
    const Tensor made = at::zeros({bins * count, size}, at::kDouble);
    const Tensor first = low.to(at::kLong).unsqueeze(1);
    made.scatter_add_(1, first, (inside.to(at::kDouble) - share).unsqueeze(1));
    made.scatter_add_(1, (first + 1).clamp_max(size - 1), share.unsqueeze(1));
    return made.reshape({bins, count, size}).mean(1);
  }

  // f(region, its image, A, B)
  template <class F>
  void each(F f) const {
    need_data(boxes);
    const Tensor all = boxes.to(at::kDouble).contiguous();
    const auto* box = all.const_data_ptr<double>();
    for (int64_t k = 0; k < boxes.size(0); ++k, box += 5) {
      require(box[0] >= 0 && box[0] < static_cast<double>(image[0]),
              "images of regions must be in ", "[0, ", image[0] - 1, "], but one is ", box[0]);
      const double shift = aligned ? 0.5 : 0, more = end_inside ? 1 : 0, least = any_size ? 0 : 1;
      const auto length = [&](double first, double last) {
        return std::max((last + more - first) * scale, least);
      };
      f(k, static_cast<int64_t>(box[0]),
        weights(box[2] * scale - shift, length(box[2], box[4]), rows, image[2]),
        weights(box[1] * scale - shift, length(box[1], box[3]), columns, image[3]));
    }
  }

  void pool(const Tensor& x, const Out& out) const {
    check_real(x, "self");
    const Tensor made = at::empty(pooled(), at::kDouble);
    check_result(out.tensor(), made, "out");
    each([&](int64_t k, int64_t n, const Tensor& a, const Tensor& b) {
      made[k].copy_(at::matmul(at::matmul(a, x[n].to(at::kDouble)), b.t()));
    });
    out = made;
  }
  void spread(const Tensor& dy, const Out& dx) const {
    check_real(dy, "the gradient");
    check_shape(dy, "the gradient", pooled());
    count_of(image, "the shape of the images");
    check_shape(dx.tensor(), "the result", image);
    const Tensor made = at::zeros(image, dy.options().dtype(at::kDouble));
    each([&](int64_t k, int64_t n, const Tensor& a, const Tensor& b) {
      made[n].add_(at::matmul(at::matmul(a.t(), dy[k].to(at::kDouble)), b));
    });
    dx = made;
  }
};

// roiEndMode 0: regions have at least a pixel; 1: the end is inside.
PooledRegions by_mode(const Ints& image, const Tensor& boxes, double scale, int64_t rows,
                      int64_t columns, int64_t samples, int64_t mode) {
  require(mode == 0 || mode == 1, "roiEndMode must be 0 or 1, but got ", mode);
  PooledRegions made{image, boxes, scale, rows, columns, samples};
  made.end_inside = made.any_size = mode == 1;
  made.check("rois");
  return made;
}

void pool_regions(Tensor x, Tensor boxes, double scale, int64_t rows, int64_t columns,
                  int64_t samples, int64_t mode, Out out) {
  check_rank(x, "self", 4, 4);
  by_mode(x.sizes().vec(), boxes, scale, rows, columns, samples, mode).pool(x, out);
}

void pool_regions_grad(Tensor dy, Tensor boxes, Ints image, int64_t columns, int64_t rows,
                       double scale, int64_t samples, int64_t mode, Out dx) {
  by_mode(image, boxes, scale, rows, columns, samples, mode).spread(dy, dx);
}

PooledRegions by_alignment(const Ints& image, const Tensor& boxes, double scale, int64_t rows,
                           int64_t columns, int64_t samples, bool aligned) {
  PooledRegions made{image, boxes, scale, rows, columns, std::max<int64_t>(0, samples)};
  made.aligned = made.any_size = aligned;
  made.check("boxes");
  return made;
}

void pool_regions_v2(Tensor x, Tensor boxes, int64_t rows, int64_t columns, double scale,
                     int64_t samples, bool aligned, Out out) {
  check_rank(x, "self", 4, 4);
  by_alignment(x.sizes().vec(), boxes, scale, rows, columns, samples, aligned).pool(x, out);
}

void pool_regions_v2_grad(Tensor dy, Tensor boxes, Ints image, int64_t rows, int64_t columns,
                          double scale, int64_t samples, bool aligned, Out dx) {
  by_alignment(image, boxes, scale, rows, columns, samples, aligned).spread(dy, dx);
}

}  // namespace

const Composite region_align_composites[] = {
    ENTRY(pool_regions),
    ENTRY(pool_regions_grad),
    ENTRY(pool_regions_v2),
    ENTRY(pool_regions_v2_grad),
    {},
};

}  // namespace openaclnn::aten
