// SPDX-License-Identifier: Apache-2.0
// Boxes by type: overlaps, the gradients of two of them, and suppression.
#include <algorithm>
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
  const T apart = (squared(b.x0 + b.x1 - a.x0 - a.x1) + squared(b.y0 + b.y1 - a.y0 - a.y1)) * 0.25;
  return Overlap<T>(a, b, iof).iou - apart / diagonal;
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

// v is the squared difference of the angles of the diagonals; the second result is the difference.
void ciou(Tensor boxes, Tensor truth, Out overlap, Out atan_sub, bool trans, bool is_cross,
          Text mode) {
  const auto [a, b] = pairs(boxes, truth, trans, is_cross);
  const bool iof = is_iof(mode);
  const Tensor turn = at::atan(b.width() / b.height()) - at::atan(a.width() / a.height());
  const Tensor v = squared(turn) * (4 / (M_PI * M_PI));
  overlap = distant(a, b, iof) - v * v / (1 + kEps - Overlap<Tensor>(a, b, iof).iou + v);
  atan_sub = turn;
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

// ---- suppression: a box goes if it overlaps a kept one of a higher score by more than the limit
// --

// The kept boxes, at most `most`, of those in this order.
std::vector<int64_t> kept_boxes(const Tensor& boxes, const Tensor& order, double limit,
                                int64_t most) {
  const Tensor b = boxes.to(at::kDouble).contiguous(), o = order.contiguous();
  const auto* box = data_of<double>(b);
  const auto* sequence = data_of<int64_t>(o);
  const auto overlap = [&](int64_t i, int64_t j) {
    const double *p = box + 4 * i, *q = box + 4 * j;
    const double w = std::min(p[2], q[2]) - std::max(p[0], q[0]);
    const double h = std::min(p[3], q[3]) - std::max(p[1], q[1]);
    if (!(w > 0 && h > 0)) return 0.0;
    const auto area = [](const double* r) { return (r[2] - r[0]) * (r[3] - r[1]); };
    return w * h / (area(p) + area(q) - w * h);
  };
  std::vector<int64_t> kept;
  for (int64_t n = 0; n < o.numel() && static_cast<int64_t>(kept.size()) < most; ++n) {
    const auto covers = [&](int64_t other) { return overlap(sequence[n], other) > limit; };
    if (std::none_of(kept.begin(), kept.end(), covers)) kept.push_back(sequence[n]);
  }
  return kept;
}

// Rows of x0, y0, x1, y1, score, by falling scores; the mask says which are kept.
void nms_with_mask(Tensor box_scores, Out boxes, Out indices, Out mask, double iou_threshold) {
  check_rank(box_scores, "box_scores", 2, 2);
  check_shape(box_scores, "box_scores", {box_scores.size(0), 5});
  need_data(box_scores);
  const Tensor order = std::get<1>(box_scores.select(1, 4).sort(true, 0, true));
  const Tensor sorted = box_scores.index_select(0, order);
  const Tensor kept = at::zeros({order.numel()}, at::kBool);
  for (const int64_t i : kept_boxes(sorted.narrow(1, 0, 4), at::arange(order.numel(), at::kLong),
                                    iou_threshold, order.numel()))
    kept[i].fill_(true);
  boxes = sorted;
  indices = order;
  mask = kept;
}

// Boxes by any two opposite corners, scores above a limit; the result is filled up with 0.
void non_max_suppression(Tensor boxes, Tensor scores, Tensor most, Tensor iou_threshold,
                         Tensor score_threshold, Out indices, Out count, std::optional<bool>) {
  check_shape(scores, "scores", {boxes.size(0)});
  need_data(boxes);
  const Tensor wide = at_least_float(boxes), s = at_least_float(scores);
  const Tensor ends = at::stack({wide.narrow(1, 0, 2), wide.narrow(1, 2, 2)});
  const Tensor corners = at::cat({std::get<0>(ends.min(0)), std::get<0>(ends.max(0))}, 1);
  const Tensor order = std::get<1>(s.sort(true, 0, true));
  const Tensor high =
      order.masked_select(s.index_select(0, order) > number_in<double>(score_threshold));
  const auto kept = kept_boxes(corners, high, number_in<double>(iou_threshold), number_in(most));
  const Tensor padded = at::zeros(indices.tensor().sizes(), at::kLong);
  require(static_cast<int64_t>(kept.size()) <= padded.numel(), "selected_indices must have room ",
          "for max_output_size, ", number_in(most), ", but has ", padded.numel());
  std::copy(kept.begin(), kept.end(), data_of<int64_t>(padded));
  indices = padded;
  count = at::full({}, static_cast<int64_t>(kept.size()), at::kLong);
}

}  // namespace

const Composite box_composites[] = {
    ENTRY(giou), ENTRY(giou_grad),   ENTRY(diou),          ENTRY(diou_grad),
    ENTRY(ciou), ENTRY(iou_by_type), ENTRY(nms_with_mask), ENTRY(non_max_suppression),
    {},
};

}  // namespace openaclnn::aten
