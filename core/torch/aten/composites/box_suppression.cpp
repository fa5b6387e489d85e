// SPDX-License-Identifier: Apache-2.0
// Boxes by type: suppression. A box goes if it overlaps a kept one of a higher score by more than
// the limit.
#include <algorithm>

#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

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

// Each class by itself, on its own boxes or the ones that all classes share; of what is kept, the
// highest scores over all classes.
void class_suppression(Tensor boxes, Tensor scores, Out out, Out out_scores, Out out_classes,
                       Out counts, double score_threshold, double iou_threshold,
                       int64_t max_size_per_class, int64_t max_total_size,
                       std::optional<bool> change_coordinate_frame,
                       std::optional<bool> transpose_box) {
  require(!change_coordinate_frame.value_or(false), "change_coordinate_frame must be false");
  require(!transpose_box.value_or(false), "transpose_box must be false");
  require(max_size_per_class >= 0 && max_total_size >= 0,
          "max_size_per_class and max_total_size must not be negative");
  check_rank(scores, "scores", 3, 3);
  check_rank(boxes, "boxes", 4, 4);
  const int64_t batch = scores.size(0), count = scores.size(1), classes = scores.size(2);
  require_shape(boxes.size(2) == 1 || boxes.size(2) == classes, "boxes must have 1 or ", classes,
                " along dim 2, but have shape ", boxes.sizes());
  check_shape(boxes, "boxes", {batch, count, boxes.size(2), 4});
  need_data(boxes);
  const Tensor wide = at_least_float(boxes), all = at_least_float(scores);
  const auto filled = [&](at::IntArrayRef shape) { return at::zeros(shape, wide.options()); };
  const Tensor found = filled({batch, max_total_size, 4}), high = filled({batch, max_total_size});
  const Tensor kinds = filled({batch, max_total_size}), number = at::zeros({batch}, at::kLong);
  for (int64_t n = 0; n < batch; ++n) {
    Tensors kept_boxes_of, kept_scores, kept_classes;
    for (int64_t c = 0; c < classes; ++c) {
      const Tensor s = all[n].select(1, c);
      const Tensor b = wide[n].select(1, boxes.size(2) == 1 ? 0 : c);
      const Tensor order = std::get<1>(s.sort(true, 0, true));
      const Tensor above = order.masked_select(s.index_select(0, order) > score_threshold);
      const auto kept = kept_boxes(b, above, iou_threshold, max_size_per_class);
      const Tensor chosen = at::tensor(kept, at::kLong);
      kept_boxes_of.push_back(b.index_select(0, chosen));
      kept_scores.push_back(s.index_select(0, chosen));
      kept_classes.push_back(at::full_like(kept_scores.back(), c));
    }
    if (classes == 0) continue;
    const Tensor together = at::cat(kept_scores);
    const int64_t most = std::min(together.numel(), max_total_size);
    const Tensor best = std::get<1>(together.sort(true, 0, true)).narrow(0, 0, most);
    found[n].narrow(0, 0, most).copy_(at::cat(kept_boxes_of).index_select(0, best));
    high[n].narrow(0, 0, most).copy_(together.index_select(0, best));
    kinds[n].narrow(0, 0, most).copy_(at::cat(kept_classes).index_select(0, best));
    number[n].fill_(most);
  }
  out = found;
  out_scores = high;
  out_classes = kinds;
  counts = number;
}

}  // namespace

const Composite box_suppression_composites[] = {
    ENTRY(nms_with_mask),
    ENTRY(non_max_suppression),
    ENTRY(class_suppression),
    {},
};

}  // namespace openaclnn::aten
