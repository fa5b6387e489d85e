// SPDX-License-Identifier: Apache-2.0
// GroupNormSwishGrad for channels of many positions. With x̂ = (x - mean) rstd, t = s (x̂ γ + β) and
// u = dy σ(t) (1 + t (1 - σ(t))), one sweep sums u and u x̂ of each channel, the next stores
// dx = rstd (γ u - c1 - x̂ c2), c1 and c2 being the means of γ u and γ u x̂ over the group.
#pragma once

#include "core/kernels/group_norm_slot.h"
#include "core/kernels/group_norm_sweeps.h"
#include "core/kernels/group_norm_tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

class GroupNormGradient {
 public:
  // What u is kept in between the sweeps: `cache`, or dx itself, or nothing.
  explicit GroupNormGradient(const GroupNormCall& call, float* cache = nullptr)
      : call_(call),
        tiles_(call),
        groups_(call),
        direct_(call.rows == 1 && tiles_.dense(call.x) && tiles_.dense(call.dy) &&
                tiles_.dense(call.out)),
        keep_(call.keep && call.out.data != call.x.data),
        cache_(cache),
        pitch_(Slot::pitch(call)) {}

  // Σ u and Σ u x̂ of each row over one segment.
  void sums(const Slice& at, double* u, double* ux) {
    LaneSums lanes[kMaxRows];
    for (int64_t r = 0; r < at.rows; ++r) {
      lanes[r].clear(), u[r] = ux[r] = 0;
      row_[r] = row(at.sample, at.channel + r);
    }
    const int64_t begin = at.segment * kSegment;
    const int64_t end = least(begin + kSegment, call_.positions);
    for (int64_t first = begin; first < end; first += call_.columns) {
      const Place place{at.sample, at.channel, first, at.rows, least(call_.columns, end - first)};
      const Lines dy = read(call_.dy, place, dy_), x = read(call_.x, place, x_);
      const Lines kept = keep_ ? write(place) : Lines{};
      for (int64_t r = 0; r < at.rows; ++r) {
        float* const keep = cache_ != nullptr ? cached(at.channel + r, first)
                                              : static_cast<float*>(keep_ ? kept.at(r) : nullptr);
        for (int64_t i = 0; i < place.columns; i += kPiece) {
          const int64_t n = least(kPiece, place.columns - i);
          add_terms(row_[r], dy.element, dy.at(r, i), x.at(r, i),
                    keep == nullptr ? nullptr : keep + i, n, lanes[r]);
          if ((first + i + n) % kPiece != 0 && first + i + n < end) continue;
          u[r] += tree(lanes[r].u), ux[r] += tree(lanes[r].ux);
          lanes[r].clear();
        }
      }
      if (keep_) written(place, kept);
    }
  }

  // dx of each row over one segment; `mean` holds c1, c2 of the groups from that of `at.channel`
  // on.
  void input_gradient(const Slice& at, const double* mean) {
    const int64_t first_group = groups_[at.channel];
    InputRow input[kMaxRows];
    for (int64_t r = 0; r < at.rows; ++r) {
      const int64_t channel = at.channel + r;
      row_[r] = row(at.sample, channel);
      const double* const means = mean + 2 * (groups_[channel] - first_group);
      input[r] = InputRow(row_[r], value_of(call_.gamma, channel), means);
    }
    const int64_t begin = at.segment * kSegment;
    const int64_t end = least(begin + kSegment, call_.positions);
    for (int64_t first = begin + (end - 1 - begin) / call_.columns * call_.columns; first >= begin;
         first -= call_.columns) {
      const Place place{at.sample, at.channel, first, at.rows, least(call_.columns, end - first)};
      const Lines x = read(call_.x, place, x_), dx = write(place);
      const Lines dy = cache_ != nullptr ? Lines{cached(at.channel, first), pitch_}
                                         : read(keep_ ? call_.out : call_.dy, place, dy_);
      const bool kept = cache_ != nullptr || keep_;
      for (int64_t r = 0; r < at.rows; ++r) {
        differentiate(input[r], row_[r],
                      {x.element, dy.at(r), kept, x.at(r), dx.at(r), place.columns, dx.past});
      }
      written(place, dx);
    }
  }

  // All of a bundle for a block of samples.
  void bundle(int64_t item, void* workspace) {
    const Bundle bundle(call_, item);
    first_cached_ = bundle.first_channel;
    for_samples(call_, bundle, workspace,
                [&](int64_t n, double* beta, double* gamma) { sample(n, bundle, beta, gamma); });
  }

 private:
  GradientRow row(int64_t sample, int64_t channel) {
    const int64_t index = sample * call_.groups + groups_[channel];
    if (index != statistics_.index)
      statistics_ = {index, value_of(call_.mean, index), value_of(call_.rstd, index)};
    return {call_, statistics_, channel};
  }

  // Rows as they lie, or in fp32 in a buffer.
  struct Lines {
    void* data = nullptr;
    int64_t pitch = 0;  // in elements
    Element element = Element::f32;
    bool past = false;  // to be written with streaming stores
    void* at(int64_t row, int64_t column = 0) const {
      return element_at(data, element, row * pitch + column);
    }
  };

  Lines read(const GroupNormTensor& t, const Place& place, float* buffer) {
    if (direct_) return {tiles_.address(t, place, 0), 0, t.element};
    const Rows rows = tiles_.load(t, place, buffer, Tiles::Fill::zero);
    return {rows.data, rows.pitch};
  }

  Lines write(const Place& place) {
    const GroupNormTensor& t = call_.out;
    if (direct_) return {tiles_.address(t, place, 0), 0, t.element, call_.stream};
    const Rows rows = tiles_.target(t, place, dy_);
    return {rows.data, rows.pitch, Element::f32, rows.past};
  }

  void written(const Place& place, const Lines& lines) {
    if (!direct_) tiles_.store(call_.out, place, {static_cast<float*>(lines.data), lines.pitch});
  }

  float* cached(int64_t channel, int64_t position) const {
    return cache_ + (channel - first_cached_) * pitch_ + position;
  }

  // Adds u and u x̂ of at most kPiece elements to sums, and puts u where `keep` is.
  void add_terms(const GradientRow& row, Element element, const void* dy, const void* x,
                 float* keep, int64_t n, LaneSums& sums) {
    if (keep == dy) dy = copy(spare_dy_, dy, element, n);  // the far formula needs it again
    const LaneSums before = sums;
    const bool near = with_type(element, [&]<class Type>(Type) {
      using Raw = typename Type::Raw;
      return group_norm_sums_near<Type>(row, static_cast<const Raw*>(dy),
                                        static_cast<const Raw*>(x), keep, n, sums);
    });
    if (near) return;
    far_terms(row, element, dy, x, n);
    if (keep != nullptr) std::memcpy(keep, u_, n * sizeof(float));
    const int64_t end = round_up(n, kLanes);
    for (int64_t i = n; i < end; ++i) u_[i] = xh_[i] = 0;
    LaneRegisters lanes(before);
    for (int64_t i = 0; i < end; i += kLanes) lanes.add(u_ + i, xh_ + i);
    lanes.store(sums);
  }

  void far_terms(const GradientRow& row, Element element, const void* dy, const void* x,
                 int64_t n) {
    widen(wide_dy_, dy, element, n);
    widen(wide_x_, x, element, n);
    group_norm_terms_far(row, wide_dy_, wide_x_, u_, xh_, n);
  }

  // dx and what it is made of: x and dy, or u if that was kept.
  struct Chunk {
    Element element;  // of all but u
    const void* dy;
    bool kept;  // dy is u in fp32
    const void* x;
    void* dx;
    int64_t n;
    bool stream;

    Chunk part(int64_t first, int64_t count, bool past) const {
      const auto from = [&](const void* p, Element e) {
        return static_cast<const char*>(p) + first * bytes_of(e);
      };
      return {element,
              from(dy, kept ? Element::f32 : element),
              kept,
              from(x, element),
              element_at(dx, element, first),
              count,
              past};
    }
  };

  void differentiate(const InputRow& input, const GradientRow& row, const Chunk& all) {
    const int64_t before = (-reinterpret_cast<intptr_t>(all.dx) & 63) / bytes_of(all.element);
    const int64_t head = all.stream ? least(before, all.n) : 0;  // to where a line begins
    if (head != 0) differentiate_lines(input, row, all.part(0, head, false));
    if (head < all.n) differentiate_lines(input, row, all.part(head, all.n - head, all.stream));
  }

  void differentiate_lines(const InputRow& input, const GradientRow& row, Chunk c) {
    if (c.dx == c.dy && !c.kept) c.dy = copy(spare_dy_, c.dy, c.element, c.n);
    if (c.dx == c.x) c.x = copy(spare_x_, c.x, c.element, c.n);
    const auto* u = static_cast<const float*>(c.kept ? c.dy : u_);
    const bool enough = input.enough(row);
    const bool done =
        enough && with_type(c.element, [&]<class Type>(Type) {
          using Raw = typename Type::Raw;
          const auto *x = static_cast<const Raw*>(c.x), *dy = static_cast<const Raw*>(c.dy);
          auto* const dx = static_cast<Raw*>(c.dx);
          if (!c.kept) return group_norm_gradient_near<Type>(input, row, dy, x, dx, c.n, c.stream);
          group_norm_gradient_kept<Type>(input, row, u, x, dx, c.n, c.stream);
          return true;
        });
    if (done) return;
    if (c.kept) {
      widen(wide_x_, c.x, c.element, c.n);
    } else {
      far_terms(row, c.element, c.dy, c.x, c.n);
    }
    if (enough) {
      group_norm_gradient_rows(input, u, xh_, wide_dy_, c.n);
    } else {
      group_norm_gradient_far(input, row, u, wide_x_, wide_dy_, c.n);
    }
    narrow(c.dx, wide_dy_, c.element, c.n);
  }

  static const void* copy(void* to, const void* from, Element element, int64_t n) {
    return std::memcpy(to, from, n * bytes_of(element));
  }

  void sample(int64_t n, const Bundle& bundle, double* beta, double* gamma) {
    const int64_t segments = segments_of(call_);
    double mean[2 * kMaxBundle] = {};
    const auto for_rows = [&](const auto& work) {
      for (int64_t c = 0; c < bundle.channels; c += call_.rows)
        work(bundle.first_channel + c, least(call_.rows, bundle.channels - c));
    };
    for_rows([&](int64_t channel, int64_t rows) {
      double total_u[kMaxRows] = {}, total_ux[kMaxRows] = {};
      for (int64_t segment = 0; segment < segments; ++segment) {
        double u[kMaxRows], ux[kMaxRows];
        sums({n, channel, rows, segment}, u, ux);
        for (int64_t r = 0; r < rows; ++r) total_u[r] += u[r], total_ux[r] += ux[r];
      }
      for (int64_t r = 0; r < rows; ++r) {
        const int64_t c = channel + r;
        beta[c] += total_u[r], gamma[c] += total_ux[r];
        add_to_mean(c, total_u[r], total_ux[r], mean + 2 * (groups_[c] - bundle.first_group));
      }
    });
    for (int64_t g = 0; g < 2 * bundle.groups; ++g) mean[g] /= group_size(call_);
    for (int64_t c = (bundle.channels - 1) / call_.rows * call_.rows; c >= 0; c -= call_.rows) {
      const int64_t channel = bundle.first_channel + c,
                    rows = least(call_.rows, bundle.channels - c);
      for (int64_t segment = segments - 1; segment >= 0; --segment)
        input_gradient({n, channel, rows, segment},
                       mean + 2 * (groups_[channel] - bundle.first_group));
    }
  }

  void add_to_mean(int64_t channel, double u, double ux, double* mean) const {
    const double weight = value_of(call_.gamma, channel);
    mean[0] += weight * u, mean[1] += weight * ux;
  }

  const GroupNormCall& call_;
  Tiles tiles_;
  Groups groups_;
  Statistics statistics_;
  const bool direct_, keep_;
  float* const cache_;
  const int64_t pitch_;
  int64_t first_cached_ = 0;
  GradientRow row_[kMaxRows];
  alignas(64) float x_[kTileRoom], dy_[kTileRoom];
  alignas(64) float wide_dy_[kMaxColumns], wide_x_[kMaxColumns], u_[kMaxColumns], xh_[kMaxColumns];
  alignas(64) float spare_dy_[kMaxColumns], spare_x_[kMaxColumns];
};

inline void group_norm_backward(const void* call, void* workspace, int64_t begin, int64_t end) {
  const Slot slot(group_norm_call(call), workspace);
  GroupNormGradient gradient(group_norm_call(call), slot.data());
  for (int64_t item = begin; item < end; ++item) gradient.bundle(item, workspace);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
