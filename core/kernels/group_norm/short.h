// SPDX-License-Identifier: Apache-2.0
// For channels of few positions (kShort), down to one, loops run over the channels of many groups
// at a time, and sums over positions are taken in order.
#pragma once

#include "core/kernels/block.h"
#include "core/kernels/group_norm/items.h"
#include "core/kernels/group_norm/moments.h"
#include "core/kernels/transpose.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// Up to kShortChannels channels of one sample that belong together: whole groups, or a part of one.
struct Channels {
  int64_t sample, first, count;
};

// Sums in 8 lanes and a fixed tree.
inline double sum_of(const double* values, int64_t n) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int l = 0; l < 8; ++l) lane[l] += values[i + l];
  }
  for (int l = 0; i < n; ++i, ++l) lane[l] += values[i];
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// What the short kernels of both operators share: tiles of positions × channels.
class ShortGroups {
 protected:
  explicit ShortGroups(const GroupNormCall& call)
      : call_(call),
        width_(call.channels / call.groups),
        together_(short_channels(call.positions)) {}

  // The channels of a bundle, as many at a time as fill a tile.
  template <class Work>
  void for_channels(int64_t sample, const Bundle& bundle, const Work& work) const {
    for (int64_t c = 0; c < bundle.channels; c += together_)
      work(Channels{sample, bundle.first_channel + c, least(together_, bundle.channels - c)});
  }

  // All positions, `count` channels each.
  void load(const GroupNormTensor& t, const Channels& at, float* out) {
    const int64_t n = at.count, positions = call_.positions;
    if (t.channel != 1 && positions > 1 && call_.spatial_loops == 1 && t.position[0] == 1) {
      const auto* from = static_cast<const float*>(address(t, at, 0));
      int64_t step = t.channel;
      if (t.element != Element::f32) {
        for (int64_t c = 0; c < n; ++c)
          widen(stage_ + c * positions, element_at(address(t, at, 0), t.element, c * step),
                t.element, positions);
        from = stage_, step = positions;
      }
      transpose(out, n, from, step, positions, n);
      return;
    }
    for (int64_t h = 0; h < positions; ++h, out += n) {
      void* const from = address(t, at, h);
      if (t.channel == 1) {
        widen(out, from, t.element, n);
      } else if (t.element == Element::f32) {
        move(out, {0, 1}, from, {0, t.channel}, 1, n, t.element);
      } else {
        move(stage_, {0, 1}, from, {0, t.channel}, 1, n, t.element);
        widen(out, stage_, t.element, n);
      }
    }
  }

  void store(const GroupNormTensor& t, const Channels& at, const float* values) {
    const int64_t n = at.count, positions = call_.positions;
    if (t.channel != 1 && positions > 1 && call_.spatial_loops == 1 && t.position[0] == 1) {
      const int64_t step = t.channel;
      auto* const to = static_cast<float*>(address(t, at, 0));
      if (t.element == Element::f32) {
        transpose(to, step, values, n, n, positions);
        return;
      }
      transpose(stage_, positions, values, n, n, positions);
      for (int64_t c = 0; c < n; ++c)
        narrow(element_at(to, t.element, c * step), stage_ + c * positions, t.element, positions);
      return;
    }
    for (int64_t h = 0; h < positions; ++h, values += n) {
      void* const to = address(t, at, h);
      if (t.channel == 1) {
        narrow(to, values, t.element, n);
      } else if (t.element == Element::f32) {
        move(to, {0, t.channel}, values, {0, 1}, 1, n, t.element);
      } else {
        narrow(stage_, values, t.element, n);
        move(to, {0, t.channel}, stage_, {0, 1}, 1, n, t.element);
      }
    }
  }

  // Copies the value of each group to each of its channels; a part of a group has one value.
  template <class T>
  void spread(const Channels& at, const T* of_group, T* out) const {
    if (width_ == 1) {
      std::memcpy(out, of_group, at.count * sizeof(T));
      return;
    }
    for (int64_t c = 0; c < at.count; ++of_group) {
      const int64_t end = least(at.count, c + width_);
      for (; c < end; ++c) out[c] = *of_group;
    }
  }

  // Adds the values of each group's channels to its sum.
  void reduce(const Channels& at, const double* values, double* of_group) const {
    if (width_ == 1) {
      for (int64_t c = 0; c < at.count; ++c) of_group[c] += values[c];
      return;
    }
    for (int64_t c = 0; c < at.count; c += width_)
      *of_group++ += sum_of(values + c, least(width_, at.count - c));
  }

  void load(const GroupNormStatistic& s, int64_t index, int64_t n, float* out) const {
    if (s.loops == 1 && s.stride[0] == 1) {
      widen(out, place_of(s, index), s.element, n);
    } else {
      for (int64_t g = 0; g < n; ++g) out[g] = value_of(s, index + g);
    }
  }

  void store(const GroupNormStatistic& s, int64_t index, int64_t n, const double* values) const {
    if (s.loops == 1 && s.stride[0] == 1) {
      narrow(place_of(s, index), values, s.element, n);
    } else {
      for (int64_t g = 0; g < n; ++g) narrow(place_of(s, index + g), values + g, s.element, 1);
    }
  }

  const GroupNormCall& call_;
  const int64_t width_, together_;

 private:
  void* address(const GroupNormTensor& t, const Channels& at, int64_t position) const {
    return element_at(t.data, t.element, offset_of(call_, t, at.sample, at.first, position));
  }

  alignas(64) float stage_[kShortTile];
};

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
