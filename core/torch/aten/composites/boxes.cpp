// SPDX-License-Identifier: Apache-2.0
// Boxes by type: overlaps and their gradients.
#include <array>

#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// ---- overlaps: the formulas are those of tensors, or of tensors with their derivatives ----

// Of shape (M), and (8, M): by the four coordinates of each box.
struct Dual {
  Tensor value, partials;
};

Dual operator+(const Dual& a, const Dual& b) {
  return {a.value + b.value, a.partials + b.partials};
}
Dual operator-(const Dual& a, const Dual& b) {
  return {a.value - b.value, a.partials - b.partials};
}
Dual operator*(const Dual& a, const Dual& b) {
  return {a.value * b.value, a.partials * b.value + a.value * b.partials};
}
Dual operator/(const Dual& a, const Dual& b) {
  const Tensor quotient = a.value / b.value;
  return {quotient, (a.partials - quotient * b.partials) / b.value};
}
Dual operator+(const Dual& a, double b) { return {a.value + b, a.partials}; }
Dual operator*(const Dual& a, double b) { return {a.value * b, a.partials * b}; }

Tensor lower(const Tensor& a, const Tensor& b) { return at::minimum(a, b); }
Tensor upper(const Tensor& a, const Tensor& b) { return at::maximum(a, b); }
Tensor above_zero(const Tensor& a) { return a.clamp_min(0); }
Tensor arc_tangent(const Tensor& a) { return at::atan(a); }
Dual arc_tangent(const Dual& a) {
  return {at::atan(a.value), a.partials / (a.value * a.value + 1)};
}
Dual lower(const Dual& a, const Dual& b) {
  return {lower(a.value, b.value), at::where(a.value <= b.value, a.partials, b.partials)};
}
Dual upper(const Dual& a, const Dual& b) {
  return {upper(a.value, b.value), at::where(a.value >= b.value, a.partials, b.partials)};
}
Dual above_zero(const Dual& a) { return {above_zero(a.value), a.partials * (a.value > 0)}; }

constexpr double kEps = 1e-9;

template <class T>
struct Box {
  T x0, y0, x1, y1;

  // The coordinates are corners, or (trans) centre, width and height.
  static Box from(const std::array<T, 4>& t, bool trans) {
    if (!trans) return {t[0], t[1], t[2], t[3]};
    const T w = t[2] * 0.5, h = t[3] * 0.5;
    return {t[0] - w, t[1] - h, t[0] + w, t[1] + h};
  }
  T width() const { return x1 - x0; }
  T height() const { return y1 - y0 + kEps; }
  T area() const { return width() * height(); }
};

template <class T>
struct Overlap {
  T iou, both, either;  // the areas of the intersection and of the union

  Overlap(const Box<T>& a, const Box<T>& b, bool iof)
      : both(above_zero(lower(a.x1, b.x1) - upper(a.x0, b.x0)) *
             above_zero(lower(a.y1, b.y1) - upper(a.y0, b.y0))),
        either(a.area() + b.area() - both) {
    iou = both / ((iof ? b.area() : either) + kEps);
  }
};

// The box around both.
template <class T>
Box<T> hull(const Box<T>& a, const Box<T>& b) {
  return {lower(a.x0, b.x0), lower(a.y0, b.y0), upper(a.x1, b.x1), upper(a.y1, b.y1)};
}

template <class T>
T squared(const T& x) {
  return x * x;
}

template <class T>
T generalised(const Box<T>& a, const Box<T>& b, bool iof) {
  const Overlap<T> o(a, b, iof);
  const Box<T> around = hull(a, b);
  const T area = around.width() * (around.y1 - around.y0) + kEps;
  return o.iou - (area - o.either) / area;
}

// Less the squared distance of the centres over that of the corners of the hull.
template <class T>
T distant(const Box<T>& a, const Box<T>& b, bool iof) {
  const Box<T> around = hull(a, b);
  const T diagonal = squared(around.width()) + squared(around.y1 - around.y0) + kEps;
  const T distance =
      (squared(b.x0 + b.x1 - a.x0 - a.x1) + squared(b.y0 + b.y1 - a.y0 - a.y1)) * 0.25;
  return Overlap<T>(a, b, iof).iou - distance / diagonal;
}

// The difference of the angles of the diagonals.
template <class T>
T turn(const Box<T>& a, const Box<T>& b) {
  return arc_tangent(b.width() / b.height()) - arc_tangent(a.width() / a.height());
}

template <class T>
T complete(const Box<T>& a, const Box<T>& b, bool iof) {
  const T v = squared(turn(a, b)) * (4 / (M_PI * M_PI));
  return distant(a, b, iof) - v * v / (v - Overlap<T>(a, b, iof).iou + (1 + kEps));
}

bool is_iof(const Text& mode) {
  require(mode == "iou" || mode == "iof", "mode must be iou or iof, but is ", mode);
  return mode == "iof";
}

// Boxes are columns. Each with its own truth: (1, M); is_cross: each with all, (N, M).
std::pair<Box<Tensor>, Box<Tensor>> pairs(const Tensor& boxes, const Tensor& truth, bool trans,
                                          bool is_cross) {
  require_shape(is_cross || truth.sizes() == boxes.sizes(), "gtboxes must have the shape of ",
                "bboxes, ", boxes.sizes(), ", unless is_cross, but has ", truth.sizes());
  const auto of = [&](const Tensor& x, int64_t dim) {
    const Tensor t = at_least_float(x).unsqueeze(dim);
    return Box<Tensor>::from({t.select(0, 0), t.select(0, 1), t.select(0, 2), t.select(0, 3)},
                             trans);
  };
  return {of(boxes, 1), of(truth, is_cross ? 2 : 1)};
}

void giou(Tensor boxes, Tensor truth, Out out, bool trans, bool is_cross, Text mode) {
  const auto [a, b] = pairs(boxes, truth, trans, is_cross);
  out = generalised(a, b, is_iof(mode));
}

void diou(Tensor boxes, Tensor truth, Out out, bool trans, bool is_cross, Text mode) {
  const auto [a, b] = pairs(boxes, truth, trans, is_cross);
  out = distant(a, b, is_iof(mode));
}

void ciou(Tensor boxes, Tensor truth, Out overlap, Out atan_sub, bool trans, bool is_cross,
          Text mode) {
  const auto [a, b] = pairs(boxes, truth, trans, is_cross);
  overlap = complete(a, b, is_iof(mode));
  atan_sub = turn(a, b);
}

template <auto formula>
void overlap_grad(Tensor gradient, Tensor boxes, Tensor truth, Out dboxes, Out dtruth, bool trans,
                  bool is_cross, Text mode) {
  require(!is_cross, "is_cross must be false, because a gradient has one truth for each box");
  check_shape(truth, "gtboxes", boxes.sizes());
  require_shape(gradient.numel() == boxes.size(1), "dy must have one number for each of ",
                boxes.size(1), " boxes, but has shape ", gradient.sizes());
  const Tensor both = at::cat({at_least_float(boxes), at_least_float(truth)});
  std::array<Dual, 8> t;
  for (size_t i = 0; i < t.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    t[i] = {both.select(0, row), at::zeros_like(both)};
    t[i].partials.select(0, row).fill_(1);
  }
  const auto a = Box<Dual>::from({t[0], t[1], t[2], t[3]}, trans);
  const auto b = Box<Dual>::from({t[4], t[5], t[6], t[7]}, trans);
  const Tensor found = formula(a, b, is_iof(mode)).partials * at_least_float(gradient).flatten();
  dboxes = found.narrow(0, 0, 4);
  dtruth = found.narrow(0, 4, 4);
}
constexpr auto giou_grad = overlap_grad<generalised<Dual>>;
constexpr auto diou_grad = overlap_grad<distant<Dual>>;

// atan_sub follows from the boxes.
void ciou_grad(Tensor gradient, Tensor boxes, Tensor truth, Tensor, Out dboxes, Out dtruth,
               bool trans, bool is_cross, Text mode) {
  overlap_grad<complete<Dual>>(gradient, boxes, truth, dboxes, dtruth, trans, is_cross, mode);
}

// Areas grow by eps in width and height; a row for each truth.
void iou_by_type(Tensor boxes, Tensor truth, Out out, Text mode, std::optional<double> eps) {
  const bool iof = is_iof(mode);
  const Tensor a = at_least_float(boxes).unsqueeze(0), b = at_least_float(truth).unsqueeze(1);
  const auto area = [&](const Tensor& x) {
    return (x.narrow(-1, 2, 2) - x.narrow(-1, 0, 2) + eps.value_or(1)).prod(-1);
  };
  const Tensor both = (at::minimum(a.narrow(-1, 2, 2), b.narrow(-1, 2, 2)) -
                       at::maximum(a.narrow(-1, 0, 2), b.narrow(-1, 0, 2)))
                          .clamp_min(0)
                          .prod(-1);
  out = both / (iof ? area(b) : area(a) + area(b) - both);
}

}  // namespace

const Composite box_composites[] = {
    ENTRY(giou), ENTRY(giou_grad), ENTRY(diou),        ENTRY(diou_grad),
    ENTRY(ciou), ENTRY(ciou_grad), ENTRY(iou_by_type), {},
};

}  // namespace openaclnn::aten
