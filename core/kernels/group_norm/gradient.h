// SPDX-License-Identifier: Apache-2.0
// GroupNormSwishGrad for channels of many positions. With x̂ = (x - mean) rstd, t = s (x̂ γ + β) and
// u = dy σ(t) (1 + t (1 - σ(t))), the first sweep sums u and u x̂ of each channel, and the second
// stores dx = rstd (γ u - c1 - x̂ c2), where c1 and c2 are the means of γ u and γ u x̂ over the
// group.
#pragma once

#include "core/kernels/group_norm/exact.h"
#include "core/kernels/group_norm/gradient_bodies.h"
#include "core/kernels/group_norm/sweeps.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// What both loops share.
class GradientSweeps {
 public:
  // Keeps u in rows of `pitch` from now on; the first row is that of `channel`.
  void keep_in(float* cache, int64_t pitch, int64_t channel) {
    cache_ = cache, pitch_ = pitch, first_cached_ = channel;
  }

 protected:
  explicit GradientSweeps(const GroupNormCall& call) : call_(call), keep_(keep_of(call)) {}

  // Sets the factors of rows for both sweeps; without the pairs of their groups only for the first.
  [[gnu::noinline]] void set(const Region& at, const double* pairs = nullptr) {
    for_groups(call_, at, [&](int64_t g, int64_t r, int64_t end) {
      const int64_t index = group_of(call_, at) + g;
      const double rstd = value_of(call_.rstd, index);
      const auto mean = static_cast<float>(value_of(call_.mean, index));
      for (; r < end; ++r) {
        const GradientRow row(call_, rstd, at.channel + r);
        of_.mean[r] = mean, of_.slope[r] = static_cast<float>(row.slope);
        of_.shift[r] = static_cast<float>(row.shift);
        if (pairs == nullptr) continue;
        const GradientPair pair(rstd, pairs + 2 * g);
        of_.a[r] = static_cast<float>(row.a());
        of_.b[r] = static_cast<float>(pair.b), of_.c[r] = static_cast<float>(pair.c);
      }
    });
  }

  // Keeps nothing in memory that is still to be read: exact reads x and dy again. Phase 1 cannot
  // decide this, because addresses may be set later.
  static Keep keep_of(const GroupNormCall& call) {
    const void* const dx = call.out.data;
    return dx == call.x.data || dx == call.dy.data ? Keep::nowhere : call.keep;
  }

  const GroupNormCall& call_;
  const Keep keep_;
  float* cache_ = nullptr;
  int64_t pitch_ = 0, first_cached_ = 0;
  GradientFactors of_;
};

// Loop over positions.
template <class Memory>
class GradientRows : public GradientSweeps {
 public:
  GradientRows(const GroupNormCall& call, void*) : GradientSweeps(call), memory_(call) {}

  int64_t rows() const { return memory_.rows(); }

  [[gnu::noinline]] void sum(const Region& at, Sums* found) {
    set(at);
    for (int64_t r = 0; r < at.rows; ++r) found[r] = Sums::none();
    add_rows(at, found);
  }

  // The last elements first, which are still in the cache.
  [[gnu::noinline]] void store(const Region& at, const double* pairs) {
    set(at, pairs);
    for_regions(at, rows(), memory_.columns(), Direction::last_to_first,
                [&](const Region& part, int64_t row) { store_part(part, row); });
  }

 protected:
  void add_rows(const Region& at, Sums* found) {
    for_regions(at, rows(), memory_.columns(), Direction::first_to_last,
                [&](const Region& part, int64_t row) { add_part(part, row, found + row); });
  }

 private:
  using Stored = typename Memory::Type;
  using Raw = typename Stored::Raw;
  using Inputs = StridedRows<const Raw>;

  void add_part(const Region& at, int64_t row, Sums* found) {
    static_assert(kSegment / kPiece <= kMaxRows);  // several rows have one piece or two
    const Inputs dy = memory_.load(call_.dy, at, dy_), x = memory_.load(call_.x, at, x_);
    const auto kept =
        keep_ == Keep::nowhere ? StridedRows<Raw>{} : memory_.target(call_.out, kept_at(at), dx_);
    const StridedRows<float> keep = cache_ != nullptr ? cached(at) : rows_as<float>(kept);
    LaneSums pieces[kMaxRows];
    sum_positions<Stored>(of_, row, at.rows, dy, x, keep, at.columns, pieces);
    const LaneSums* piece = pieces;
    for (int64_t r = 0; r < at.rows; ++r) {
      for (int64_t first = 0; first < at.columns; first += kPiece, ++piece)
        found[r].add({tree(piece->u), tree(piece->ud)});
    }
    if (keep_ != Keep::nowhere) memory_.store(call_.out, kept_at(at), kept);
  }

  void store_part(const Region& at, int64_t row) {
    const bool in_dx = keep_ != Keep::nowhere;
    const Inputs x = memory_.load(call_.x, at, x_), later_x = following(at);
    const Inputs from =
        cache_ != nullptr ? Inputs{} : memory_.load(in_dx ? call_.out : call_.dy, kept_at(at), dy_);
    const StridedRows<const float> u = cache_ != nullptr ? cached(at)
                                       : in_dx           ? rows_as<const float>(from)
                                                         : StridedRows<const float>{};
    const auto dx = memory_.target(call_.out, at, dx_);
    for (int64_t r = at.rows - 1; r >= 0; --r) {
      for_parts(dx[r], at.columns, dx.non_temporal, [&](int64_t i, int64_t n, bool stream) {
        const Input<Stored> in(x.at(r, i), later_x.at(r, i));
        input_gradient_of_positions(of_.row(row + r), from.at(r, i), u.at(r, i), in, dx.at(r, i), n,
                                    stream);
      });
    }
    memory_.store(call_.out, at, dx);
  }

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
    const Region there = in_group(call_, at, next);
    return {static_cast<const Raw*>(address_of(call_.x, there)), call_.x.channel};
  }

  Memory memory_;
  [[no_unique_address]] typename Memory::Buffer x_, dy_, dx_;
};

// Loop over channels. Rows are gathered of pieces in which some t needs exact, to find which.
template <class Type>
class GradientChannelsLast : public GradientRows<GatheredRows> {
 public:
  using GradientRows::GradientRows;

  [[gnu::noinline]] void sum(const Region& at, Sums* found) {
    set(at);
    of_.fill(at.rows);
    for (int64_t r = 0; r < at.rows; ++r) found[r] = Sums::none();
    for_regions(at, kMaxRows, kPiece, Direction::first_to_last, [&](const Region& piece, int64_t) {
      std::memset(&lanes_, 0, sizeof lanes_);
      if (!sum_channels<Type>(of_, at.rows, positions_of<Type, const Raw>(call_.dy, piece),
                              positions_of<Type, const Raw>(call_.x, piece), piece.columns, lanes_))
        return add_rows(piece, found);
      double u[kMaxRows], ud[kMaxRows];
      channel_trees(lanes_.u, at.rows, u), channel_trees(lanes_.ud, at.rows, ud);
      for (int64_t r = 0; r < at.rows; ++r) found[r].add({u[r], ud[r]});
    });
  }

  [[gnu::noinline]] void store(const Region& at, const double* pairs) {
    set(at, pairs);
    of_.fill(at.rows);
    const StridedRows<Raw> dx = positions_of<Type>(call_.out, at);
    input_gradient_of_channels<Type>(of_, at.rows, positions_of<Type, const Raw>(call_.dy, at),
                                     positions_of<Type, const Raw>(call_.x, at), dx, at.columns,
                                     call_.stream && at_lines(dx));
  }

 private:
  using Raw = typename Type::Raw;

  alignas(64) ChannelLanes lanes_;
};

struct Gradient {
  using Part = Sums;
  template <class Memory>
  using Rows = GradientRows<Memory>;
  template <class Type>
  using ChannelsLast = GradientChannelsLast<Type>;

  // The pair of a group is c1 and c2. The sums of channels become Σ u and Σ u x̂.
  [[gnu::noinline]] static void finish(const GroupNormCall& call, int64_t index,
                                       const StridedRows<Sums>& channels, double* pair) {
    const int64_t width = channels_of_group(call), first = index % call.groups * width;
    const double rstd = value_of(call.rstd, index), size = group_size(call);
    Sums weighted = Sums::none();
    bool exact = false;
    for (int64_t c = 0; c < width; ++c) {
      Sums& sums = *channels[c];
      const GradientRow row(call, rstd, first + c);
      exact |= row.needs_exact(sums);
      sums.ud *= rstd;
      weighted.add({row.gamma * sums.u, row.gamma * sums.ud});
    }
    pair[0] = weighted.u / size, pair[1] = weighted.ud / size;
    if (!exact && !GradientPair(rstd, pair).needs_exact()) return;
    const int64_t step = channels.step * sizeof(Sums) / sizeof(double);
    ExactGroup(call, index).gradient(&channels[0]->u, &channels[0]->ud, step);
    pair[1] = kStoredAlready;
  }
};

// Items: (sample block, batch).
inline void group_norm_backward(const void* given, void* workspace, int64_t begin, int64_t end) {
  const GroupNormCall& call = group_norm_call(given);
  const Slot slot(call, workspace);
  with_sweeps<Gradient, Items::batches>(call, workspace, [&](auto& sweeps) {
    for (int64_t item = begin; item < end; ++item) {
      const GroupBatch batch(call, item);
      sweeps.keep_in(slot.data(), Slot::pitch(call), batch.first_channel);
      for_samples(call, batch, workspace, [&](int64_t sample, double* beta, double* gamma) {
        sweep_batch<Gradient>(call, batch, sample, sweeps, [=](int64_t channel, const Sums& s) {
          beta[channel] += s.u, gamma[channel] += s.ud;
        });
      });
    }
  });
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
