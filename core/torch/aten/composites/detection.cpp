// SPDX-License-Identifier: Apache-2.0
// Object detection: overlap of boxes, attention to points of several feature maps.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// Boxes are x0, y0, x1, y1; eps is added to width and height of an area. Each pair, or the boxes of
// a row.
void iou(Tensor boxes, Tensor truth, Text mode, double eps, bool aligned, Out out) {
  require(mode == "iou" || mode == "iof", "mode must be iou or iof, but got ", mode);
  if (aligned) check_shape(truth, "gtBoxes", boxes.sizes());
  const Tensor a = at_least_float(boxes).unsqueeze(1);
  const Tensor b = at_least_float(truth).unsqueeze(aligned ? 1 : 0);
  const auto low = [](const Tensor& x) { return x.narrow(-1, 0, 2); };
  const auto high = [](const Tensor& x) { return x.narrow(-1, 2, 2); };
  const auto area = [&](const Tensor& x) { return (high(x) - low(x) + eps).prod(-1); };
  const Tensor both =
      (at::minimum(high(a), high(b)) - at::maximum(low(a), low(b))).clamp_min(0).prod(-1);
  out = both / (mode == "iof" ? area(b) : area(a) + area(b) - both);
}

// ---- attention to points of feature maps ----

// One map: value (B heads, C, h, w), grid (B heads, Q, P, 2), weight (B heads, 1, Q, P).
struct Map {
  int64_t start, count;
  Tensor value, grid, weight;
};

std::vector<Map> maps_of(const Tensor& value, const Tensor& shapes, const Tensor& starts,
                         const Tensor& location, const Tensor& weight) {
  const Ints sizes = numbers_in(shapes, "spatialShape");
  const Ints begins = numbers_in(starts, "levelStartIndex");
  const int64_t rows = value.size(0) * value.size(2), channels = value.size(3);
  const int64_t queries = location.size(1), points = location.size(4);
  std::vector<Map> maps;
  for (size_t l = 0; l < begins.size(); ++l) {
    const int64_t h = sizes[2 * l], w = sizes[2 * l + 1], start = begins[l];
    int64_t count = 0;
    require(h > 0 && w > 0 && start >= 0 && !__builtin_mul_overflow(h, w, &count) &&
                count <= value.size(1) && start <= value.size(1) - count,
            "spatialShape and levelStartIndex must lie within the ", value.size(1),
            " positions of value, but level ", l, " has ", h, " rows of ", w, " from ", start,
            " on");
    const auto level = static_cast<int64_t>(l);
    maps.push_back(
        {start, count,
         value.narrow(1, start, count).permute({0, 2, 3, 1}).reshape({rows, channels, h, w}),
         (2 * location.select(3, level) - 1)
             .permute({0, 2, 1, 3, 4})
             .reshape({rows, queries, points, 2}),
         weight.select(3, level).permute({0, 2, 1, 3}).reshape({rows, 1, queries, points})});
  }
  return maps;
}

Tensor sampled(const Map& map) { return at::grid_sampler_2d(map.value, map.grid, 0, 0, false); }

// Points are bilinear between the centres of pixels, zeros outside; the last dim is x, y in [0, 1].
void deformable_attention(Tensor value, Tensor shapes, Tensor starts, Tensor location,
                          Tensor weight, Out out) {
  const int64_t b = value.size(0), heads = value.size(2), c = value.size(3), q = location.size(1);
  check_shape(out.tensor(), "output", {b, q, heads * c});
  const Tensor v = at_least_float(value), p = at_least_float(location), a = at_least_float(weight);
  Tensor sum = at::zeros({b * heads, c, q}, v.options());
  for (const Map& map : maps_of(v, shapes, starts, p, a))
    sum += (sampled(map) * map.weight).sum(-1);
  out = sum.reshape({b, heads, c, q}).permute({0, 3, 1, 2}).reshape({b, q, heads * c});
}

void deformable_attention_grad(Tensor value, Tensor shapes, Tensor starts, Tensor location,
                               Tensor weight, Tensor gradient, Out dvalue, Out dlocation,
                               Out dweight) {
  const int64_t b = value.size(0), heads = value.size(2), c = value.size(3), q = location.size(1);
  const int64_t points = location.size(4);
  check_shape(gradient, "gradOutput", {b, q, heads * c});
  const Tensor v = at_least_float(value), p = at_least_float(location), a = at_least_float(weight);
  const Tensor g = at_least_float(gradient)
                       .reshape({b, q, heads, c})
                       .permute({0, 2, 3, 1})
                       .reshape({b * heads, c, q, 1});
  const Tensor dv = at::zeros_like(v), dp = at::zeros_like(p), da = at::zeros_like(a);
  int64_t level = 0;
  for (const Map& map : maps_of(v, shapes, starts, p, a)) {
    const auto [of_value, of_grid] = at::grid_sampler_2d_backward(
        g * map.weight, map.value, map.grid, 0, 0, false, {true, true});
    dv.narrow(1, map.start, map.count)
        .add_(of_value.reshape({b, heads, c, map.count}).permute({0, 3, 1, 2}));
    dp.select(3, level).copy_(2 *
                              of_grid.reshape({b, heads, q, points, 2}).permute({0, 2, 1, 3, 4}));
    da.select(3, level).copy_(
        (g * sampled(map)).sum(1).reshape({b, heads, q, points}).permute({0, 2, 1, 3}));
    ++level;
  }
  dvalue = dv;
  dlocation = dp;
  dweight = da;
}

}  // namespace

const Composite detection_composites[] = {
    ENTRY(iou),
    ENTRY(deformable_attention),
    ENTRY(deformable_attention_grad),
    {},
};

}  // namespace openaclnn::aten
