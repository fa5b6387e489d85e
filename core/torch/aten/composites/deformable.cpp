// SPDX-License-Identifier: Apache-2.0
// Convolution whose samples are shifted: offset holds for each set of channels and each element of
// the kernel the shifts of columns, then those of rows, then factors. In double, which keeps the
// fractions of coordinates.
#include "core/torch/aten/composites/quantised.h"

namespace openaclnn::aten {
namespace {

struct Deformable {
  Tensor x, weight, offset;
  Ints kernel, stride, padding, dilation;  // stride, dilation: of dims 2 and 3 of four
  int64_t groups, sets;
  bool modulated;
  int64_t rows = 0, columns = 0;  // of the result

  void check() {
    for (const auto& [given, name] :
         {std::pair(&x, "x"), {&weight, "weight"}, {&offset, "offset"}}) {
      check_rank(*given, name, 4, 4);
      check_real(*given, name);
    }
    const auto all = [](const Ints& list, const char* name, size_t count, int64_t least) {
      require(list.size() == count, name, " must have ", count, " numbers, but has ", list.size());
      for (const int64_t n : list)
        require(n >= least && n <= 1 << 20, name, " must be from ", least, " to ", 1 << 20,
                ", but has ", n);
    };
    all(kernel, "kernelSize", 2, 1);
    all(stride, "stride", 4, 1);
    all(padding, "padding", 4, 0);
    all(dilation, "dilation", 4, 1);
    const int64_t c = x.size(1);
    require(groups >= 1 && sets >= 1 && c % groups == 0 && c % sets == 0,
            "groups and deformableGroups must divide the channels of x, ", c, ", but are ", groups,
            " and ", sets);
    check_shape(weight, "weight", {weight.size(0), c / groups, kernel[0], kernel[1]});
    rows = size_of(0);
    columns = size_of(1);
    require_shape(rows > 0 && columns > 0 && x.size(2) > 0 && x.size(3) > 0,
                  "x must be at least as large as the kernel, but has shape ", x.sizes());
    check_shape(offset, "offset",
                {x.size(0), parts() * kernel[0] * kernel[1] * sets, rows, columns});
  }
  int64_t parts() const { return modulated ? 3 : 2; }
  int64_t size_of(size_t i) const {
    const int64_t room = x.size(static_cast<int64_t>(i) + 2) + padding[2 * i] + padding[2 * i + 1] -
                         dilation[i + 2] * (kernel[i] - 1) - 1;
    return room < 0 ? 0 : room / stride[i + 2] + 1;
  }

  // [N, part, G, KH, KW, OH, OW]
  Tensor shifts() const {
    return offset.to(at::kDouble)
        .reshape({x.size(0), parts(), sets, kernel[0], kernel[1], rows, columns});
  }
  Tensor images() const {
    return x.to(at::kDouble).reshape({x.size(0) * sets, x.size(1) / sets, x.size(2) * x.size(3)});
  }
  // Rows and columns of the samples, [N G, samples].
  std::pair<Tensor, Tensor> places(const Tensor& shift) const {
    const auto numbers = [](int64_t count, int64_t step) {
      return at::arange(count, at::kDouble) * static_cast<double>(step);
    };
    const Tensor column = shift.select(1, 0) + (numbers(columns, stride[3]) - padding[2]) +
                          numbers(kernel[1], dilation[3]).reshape({-1, 1, 1});
    const Tensor row = shift.select(1, 1) + (numbers(rows, stride[2]) - padding[0]).unsqueeze(1) +
                       numbers(kernel[0], dilation[2]).reshape({-1, 1, 1, 1});
    return {row.reshape({x.size(0) * sets, -1}), column.reshape({x.size(0) * sets, -1})};
  }
  // f(pixel of each sample and channel, its weight, the derivatives of the weight by row and
  // column) for each of the four corners; those outside have the weight 0.
  template <class F>
  void each_corner(const Tensor& shift, F f) const {
    const auto [row, column] = places(shift);
    const Tensor top = row.floor(), left = column.floor(), down = row - top, right = column - left;
    const int64_t h = x.size(2), w = x.size(3), channels = x.size(1) / sets;
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 2; ++j) {
        const Tensor y = top + i, z = left + j;
        const Tensor inside = (y >= 0).bitwise_and(y < h).bitwise_and(z >= 0).bitwise_and(z < w);
        const Tensor pixel = at::where(inside, y * w + z, 0).to(at::kLong).unsqueeze(1);
        const Tensor by_row = (i == 0 ? 1 - down : down) * inside;
        const Tensor by_column = (j == 0 ? 1 - right : right) * inside;
        f(pixel.expand({-1, channels, -1}), (by_row * by_column).unsqueeze(1),
          i == 0 ? -by_column : by_column, j == 0 ? -by_row : by_row);
      }
    }
  }
  Ints split() const {  // of samples: [N, G, C / G, KH, KW, OH, OW]
    return {x.size(0), sets, x.size(1) / sets, kernel[0], kernel[1], rows, columns};
  }
  Tensor sampled(const Tensor& shift) const {
    const Tensor from = images();
    Tensor made;
    each_corner(shift, [&](const Tensor& pixel, const Tensor& share, const Tensor&, const Tensor&) {
      const Tensor part = from.gather(2, pixel) * share;
      made = made.defined() ? made + part : part;
    });
    return made.reshape(split());
  }
  Tensor factors(const Tensor& shift) const { return shift.select(1, 2).unsqueeze(2); }

  // [N, G, C / G, KH, KW, OH, OW] as [N, C, OH KH, OW KW], and back.
  Tensor laid_out(const Tensor& samples) const {
    return samples.flatten(1, 2)
        .permute({0, 1, 4, 2, 5, 3})
        .reshape({x.size(0), x.size(1), rows * kernel[0], columns * kernel[1]});
  }
  Tensor by_kernel(const Tensor& laid) const {
    return laid.reshape({x.size(0), x.size(1), rows, kernel[0], columns, kernel[1]})
        .permute({0, 1, 3, 5, 2, 4})
        .unflatten(1, {sets, x.size(1) / sets});
  }
};

void deformable_conv2d(Tensor x, Tensor weight, Tensor offset, Tensor bias, Ints kernel,
                       Ints stride, Ints padding, Ints dilation, int64_t groups, int64_t sets,
                       bool modulated, Out out, Out samples_out) {
  Deformable d{x, weight, offset, kernel, stride, padding, dilation, groups, sets, modulated};
  d.check();
  if (has(bias)) check_shape(bias, "bias", {weight.size(0)});
  const Tensor shift = d.shifts();
  Tensor samples = d.sampled(shift);
  if (modulated) samples = samples * d.factors(shift);
  const Tensor laid = d.laid_out(samples);
  out = at::conv2d(laid, weight.to(at::kDouble), has(bias) ? bias.to(at::kDouble) : Tensor(),
                   kernel, Ints{0, 0}, Ints{1, 1}, groups);
  if (has(samples_out.tensor())) samples_out = laid;
}

void deformable_conv2d_grad(Tensor x, Tensor dy, Tensor samples, Tensor weight, Tensor offset,
                            Ints kernel, Ints stride, Ints padding, Ints dilation, int64_t groups,
                            int64_t sets, bool modulated, Out dx, Out dw, Out doffset, Out dbias) {
  Deformable d{x, weight, offset, kernel, stride, padding, dilation, groups, sets, modulated};
  d.check();
  check_shape(dy, "gradOutput", {x.size(0), weight.size(0), d.rows, d.columns});
  check_shape(samples, "offsetOut",
              {x.size(0), x.size(1), d.rows * kernel[0], d.columns * kernel[1]});
  const auto [g_laid, g_weight, g_bias] = at::convolution_backward(
      dy.to(at::kDouble), samples.to(at::kDouble), weight.to(at::kDouble), Ints{weight.size(0)},
      kernel, {0, 0}, {1, 1}, false, {0, 0}, groups, {true, true, true});
  dw = g_weight;
  if (has(dbias.tensor())) dbias = g_bias;
  Tensor g = d.by_kernel(g_laid);
  const Tensor shift = d.shifts();
  Tensors found(2);
  if (modulated) {
    found.push_back((g * d.sampled(shift)).sum(2));
    g = g * d.factors(shift);
  }
  const Tensor from = d.images(), flat = g.reshape({from.size(0), from.size(1), -1});
  const Tensor spread = at::zeros_like(from);
  found[0] = at::zeros_like(flat.select(1, 0)), found[1] = at::zeros_like(found[0]);
  d.each_corner(shift, [&](const Tensor& pixel, const Tensor& share, const Tensor& by_row,
                           const Tensor& by_column) {
    spread.scatter_add_(2, pixel, flat * share);
    const Tensor both = (from.gather(2, pixel) * flat).sum(1);
    found[0].add_(both * by_column);
    found[1].add_(both * by_row);
  });
  dx = spread.reshape(x.sizes());
  Ints sizes = d.split();
  sizes.erase(sizes.begin() + 2);
  for (size_t i = 0; i < 2; ++i) found[i] = found[i].reshape(sizes);
  doffset = at::stack(found, 1).reshape(offset.sizes());
}

}  // namespace

const Composite deformable_composites[] = {
    ENTRY(deformable_conv2d),
    ENTRY(deformable_conv2d_grad),
    {},
};

}  // namespace openaclnn::aten
