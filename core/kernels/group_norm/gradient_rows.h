// SPDX-License-Identifier: Apache-2.0
// A row of GroupNormSwishGrad is one channel of one sample, with its u and d = x - mean, and dx
// from them.
#pragma once

#include "core/kernels/group_norm/gradient_sweeps.h"
#include "core/kernels/group_norm/tiles.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// What rows have in common in every layout: parameters, the place where u is kept, and the formulas
// for every t.
class GradientRows {
 public:
  // Keeps u in rows of `pitch` from now on; the first row is that of `channel`.
  void keep_in(float* cache, int64_t pitch, int64_t channel) {
    cache_ = cache, pitch_ = pitch, first_cached_ = channel;
  }

 protected:
  GradientRows(const GroupNormCall& call, void* workspace)
      : call_(call),
        groups_(call),
        keep_(keep_of(call)),
        rescales_(static_cast<int8_t*>(workspace) + call.rescales) {}

  [[gnu::always_inline]] void read_rows(const Region& at) {
    for (int64_t r = 0; r < at.rows; ++r) {
      const int64_t channel = at.channel + r, index = at.sample * call_.groups + groups_[channel];
      if (index != statistics_.index)
        statistics_ = {index, value_of(call_.mean, index), value_of(call_.rstd, index)};
      row_[r] = GradientRow(call_, statistics_, channel);
    }
  }

  // The same for sums; decides which rows are rescaled.
  [[gnu::noinline]] void read_rows_of_sums(const Region& at) {
    read_rows(at);
    const int64_t segments = segments_of(call_.positions);
    int8_t* const exponent = rescales_of(at);
    RowPart part{call_, at.sample, at.channel, at.first, 0, 1};
    const int64_t dy_first = part.offset(call_.dy, 0), x_first = part.offset(call_.x, 0);
    const auto first_of = [](const GroupNormTensor& t, int64_t offset) {
      return float_at(element_at(t.data, t.element, offset), t.element);
    };
    for (int64_t r = 0; r < at.rows; ++r, ++part.channel) {
      GradientRow& row = row_[r];
      part.mean = row.mean, part.factor = row.outside_fp32 ? row.rstd : 1;
      const float dy = first_of(call_.dy, dy_first + r * call_.dy.channel);
      const float d = first_of(call_.x, x_first + r * call_.x.channel) - row.mean;
      const bool ordinary = is_ordinary(dy) && is_ordinary(d * part.factor);
      exponent[r * segments] = ordinary ? kNoRescale : rescale(row, part);
      of_.set(r, row);
    }
  }

  // `mean` holds c1 and c2 of the groups, beginning with that of the first row.
  [[gnu::noinline]] void read_rows(const Region& at, const double* mean) {
    read_rows(at);
    const int64_t segments = segments_of(call_.positions);
    const int8_t* const exponents = rescales_of(at);
    const int64_t first_group = groups_[at.channel];
    for (int64_t r = 0; r < at.rows; ++r) {
      const int8_t exponent = exponents[r * segments];
      if (exponent != kNoRescale) row_[r].take({power_of_two(exponent), 1});
      const int64_t channel = at.channel + r;
      const double* const means = mean + 2 * (groups_[channel] - first_group);
      input_[r] = InputRow(row_[r], value_of(call_.gamma, channel), means);
      of_.set(r, row_[r]), of_.set(r, input_[r]);
    }
  }

  void terms_general(const GradientRow& row, Element element, const void* dy, const void* x,
                     int64_t n) {
    widen(wide_dy_, dy, element, n);
    widen(wide_x_, x, element, n);
    group_norm_terms_general(row, wide_dy_, wide_x_, u_, d_, n);
  }

  // Computes Σ u and Σ u d of a piece of a row, for every t, and puts u where `keep` is.
  template <class Type, class Raw = typename Type::Raw>
  Sums sums_general(const GradientRow& row, const Raw* dy, const Raw* x, float* keep, int64_t n) {
    terms_general(row, Type::kElement, dy, x, n);
    if (keep != nullptr) std::memcpy(keep, u_, n * sizeof(float));
    for (int64_t i = n; i < round_up(n, kLanes); ++i) u_[i] = d_[i] = 0;
    LaneRegisters lanes;
    for (int64_t i = 0; i < n; i += kLanes)
      lanes.add(load_registers<F32>(u_ + i), load_registers<F32>(d_ + i));
    LaneSums sums;
    lanes.store(sums);
    return {tree(sums.u), tree(sums.ud)};
  }

  // Turns sums of u d into sums of u x̂.
  void finish(const Region& at, Sums* found) const {
    for (int64_t r = 0; r < at.rows; ++r)
      found[r].u *= row_[r].u_unit(), found[r].ux *= row_[r].unit();
  }

  // Stores dx of a part of row r, of at most kMaxColumns elements.
  template <class Type>
  void gradient(int64_t r, GradientPart<Type> part) {
    if (part.dx == part.dy && part.u == nullptr)  // the general formula needs dy and x again
      part.dy = copied(spare_dy_, part.dy, part.n);
    if (part.dx == part.x) part.x = copied(spare_x_, part.x, part.n);
    const bool fits_fp32 = input_[r].fits_fp32(row_[r]);
    if (fits_fp32 && group_norm_gradient<Type>(of_, r, part)) return;
    if (part.u == nullptr) {
      terms_general(row_[r], Type::kElement, part.dy, part.x, part.n);
      part.u = u_;
    } else {
      widen(wide_x_, part.x, Type::kElement, part.n);
    }
    if (fits_fp32) return void(group_norm_gradient<Type>(of_, r, part));  // u is right: no doubts
    group_norm_gradient_general(input_[r], row_[r], part.u, wide_x_, wide_dy_, part.n);
    narrow(part.dx, wide_dy_, Type::kElement, part.n);
  }

  // Keeps nothing if dx is x, or if u would lie in a dy still to be read. Phase 1 cannot decide
  // this, because addresses may be set later.
  static Keep keep_of(const GroupNormCall& call) {
    const void* const dx = call.out.data;
    const bool over =
        dx == call.x.data || (call.keep == Keep::cache_last_group && dx == call.dy.data);
    return over ? Keep::nowhere : call.keep;
  }

  // Copies of values that are overwritten, in case the general formula needs them again.
  template <class Raw>
  static const Raw* copied(float* to, const Raw* from, int64_t n) {
    return static_cast<const Raw*>(std::memcpy(to, from, n * sizeof(Raw)));
  }

  const GroupNormCall& call_;
  Groups groups_;
  Statistics statistics_;
  const Keep keep_;
  float* cache_ = nullptr;
  int64_t pitch_ = 0, first_cached_ = 0;
  GradientRow row_[kMaxRows];
  InputRow input_[kMaxRows];
  GradientFactors of_;
  alignas(64) float spare_dy_[kMaxColumns], spare_x_[kMaxColumns];

 private:
  // Returns the rescale of the first row; the rescales of the next rows follow, as many bytes apart
  // as there are segments.
  int8_t* rescales_of(const Region& at) const {
    const int64_t segments = segments_of(call_.positions);
    return rescales_ + (at.sample * call_.channels + at.channel) * segments + at.first / kSegment;
  }

  // The exponent of the row's rescale; a row whose largest values are ordinary has no rescale.
  [[gnu::noinline]] static int8_t rescale(GradientRow& row, const RowPart& part) {
    if (starts_ordinary(part)) return kNoRescale;
    Extent largest = extent_of(part);
    if (!is_lost(largest, row.outside_fp32)) return kNoRescale;
    if (!row.outside_fp32) largest.d *= static_cast<double>(row.rstd);
    const int exponent = exponent_to_one(largest.dy);
    row.take({power_of_two(exponent), power_of_two(exponent_to_one(largest.d))});
    return static_cast<int8_t>(exponent);
  }

  int8_t* const rescales_;
  alignas(64) float wide_dy_[kMaxColumns], wide_x_[kMaxColumns], u_[kMaxColumns], d_[kMaxColumns];
};

// Sweeps over rows, tile by tile.
template <class Memory>
class GradientSweeps : public GradientRows {
 public:
  GradientSweeps(const GroupNormCall& call, void* workspace)
      : GradientRows(call, workspace), memory_(call) {}

  // The number of rows at a time.
  int64_t rows() const { return memory_.rows(); }

  // Computes Σ u and Σ u x̂ of each row over one segment.
  void sum(const Region& at, Sums* found) {
    read_rows_of_sums(at);
    for (int64_t r = 0; r < at.rows; ++r) found[r] = {0, 0};
    add_rows(at, found);
    finish(at, found);
  }

  // Stores dx of each row over one segment, the last tile and row first.
  void store(const Region& at, const double* mean) {
    read_rows(at, mean);
    store_rows(at);
  }

 protected:
  void add_rows(const Region& at, Sums* found) {
    for_regions(at, memory_, Direction::first_to_last, [&](const Region& region, int64_t row) {
      const Inputs dy = memory_.load(call_.dy, region, dy_), x = memory_.load(call_.x, region, x_);
      const auto kept = keep_ == Keep::nowhere ? StridedRows<Raw>{}
                                               : memory_.target(call_.out, kept_at(region), dx_);
      const StridedRows<float> keep = cache_ != nullptr ? cached(region) : rows_as<float>(kept);
      add_sums(row, region, dy, x, keep, found + row);
      if (keep_ != Keep::nowhere) memory_.store(call_.out, kept_at(region), kept);
    });
  }

  void store_rows(const Region& at) {
    for_regions(at, memory_, Direction::last_to_first, [&](const Region& region, int64_t row) {
      const bool in_dx = keep_ != Keep::nowhere;
      const Inputs x = memory_.load(call_.x, region, x_), later_x = following(region);
      const Inputs from = cache_ != nullptr
                              ? Inputs{}
                              : memory_.load(in_dx ? call_.out : call_.dy, kept_at(region), dy_);
      const StridedRows<const float> u = cache_ != nullptr ? cached(region)
                                         : in_dx           ? rows_as<const float>(from)
                                                           : StridedRows<const float>{};
      const auto dx = memory_.target(call_.out, region, dx_);
      for (int64_t r = region.rows - 1; r >= 0; --r) {
        for_chunks(dx[r], region.columns, dx.non_temporal,
                   [&](int64_t first, int64_t n, bool stream) {
                     gradient<Stored>(row + r, {from.at(r, first), u.at(r, first), x.at(r, first),
                                                later_x.at(r, first), dx.at(r, first), n, stream});
                   });
      }
      memory_.store(call_.out, region, dx);
    });
  }

 private:
  using Stored = typename Memory::Type;
  using Raw = typename Stored::Raw;
  using Inputs = StridedRows<const Raw>;

  StridedRows<float> cached(const Region& at) const {
    return {cache_ + (at.channel - first_cached_) * pitch_ + at.first, pitch_};
  }

  // Where dx holds u, if it does.
  Region kept_at(const Region& at) const {
    return keep_ == Keep::cache_last_group ? in_group(call_, at, call_.samples * call_.groups - 1)
                                           : at;
  }

  // x of the next group, if groups, whose rows are then direct, take turns. A sweep that reads from
  // the cache and stores past it leaves the reading path from memory free, so x can be fetched:
  // 1x128x512x512, 32 groups, fp32, 2 threads, 14.4 -> 12.9 ms (with dy as well 14.7).
  Inputs following(const Region& at) const {
    const int64_t next = group_of(call_, at) + 1;
    if (keep_ != Keep::cache_last_group || next == call_.samples * call_.groups) return {};
    return rows_of<Stored>(call_.x, in_group(call_, at, next));
  }

  // Adds the sums of the rows of a tile, whose first row is `row`: piece by piece where some t is
  // unusual, or where u is written over dy, and so computed from a copy.
  void add_sums(int64_t row, const Region& at, const Inputs& dy, const Inputs& x,
                const StridedRows<float>& keep, Sums* found) {
    const bool over_dy = static_cast<const void*>(keep.first) == dy.first;
    if (!over_dy && add_quick(row, at.rows, dy, x, keep, at.columns, found)) return;
    const bool tried = !over_dy && at.rows == 1 && at.columns <= kPiece;
    for (int64_t r = 0; r < at.rows; ++r) {
      const GradientRow& of = row_[row + r];
      const bool skip_fast_path = tried || of.slope != of.slope;
      for (int64_t i = 0; i < at.columns; i += kPiece) {
        const int64_t n = smaller(kPiece, at.columns - i);
        const Raw* const from = over_dy ? copied(spare_dy_, dy.at(r, i), n) : dy.at(r, i);
        const Raw* const of_x = x.at(r, i);
        float* const to = keep.at(r, i);
        if (skip_fast_path || !add_quick(row + r, 1, {from}, {of_x}, {to}, n, found + r))
          found[r].add(sums_general<Stored>(of, from, of_x, to, n));
      }
    }
  }

  // Adds the sums of `count` rows of n elements from r on. Returns false if some t is unusual.
  bool add_quick(int64_t row, int64_t count, const Inputs& dy, const Inputs& x,
                 const StridedRows<float>& keep, int64_t n, Sums* found) const {
    static_assert(kSegment / kPiece <= kMaxRows);  // several rows have one piece or two
    LaneSums pieces[kMaxRows];
    if (!group_norm_row_sums<Stored>(of_, row, count, dy, x, keep, n, pieces)) return false;
    const LaneSums* piece = pieces;
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t first = 0; first < n; first += kPiece, ++piece)
        found[r].add({tree(piece->u), tree(piece->ud)});
    }
    return true;
  }

  Memory memory_;
  [[no_unique_address]] typename Memory::Buffer x_, dy_, dx_;
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
