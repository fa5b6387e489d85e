// SPDX-License-Identifier: Apache-2.0
#include "core/check/initialised_bytes.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "core/base/dtype.h"
#include "core/base/view.h"
#include "core/check/allocations.h"
#include "core/check/value_bits.h"

namespace openaclnn::check {
namespace {

// Returns the bits of the live allocation of device memory that contains `low`, and cuts *high to
// its end. Returns nothing if [low, *high) is empty.
std::optional<Bits> bits_of(uintptr_t low, uintptr_t* high) {
  const void* address = reinterpret_cast<void*>(low);
  const Block* own = is_device_address(address) ? block_at(address) : nullptr;
  if (own == nullptr || !own->live || low >= own->end() || low >= *high) {
    return std::nullopt;
  }
  if (own->mapping_index != nullptr)
    return std::nullopt;  // not tracked: may be mapped at two addresses
  *high = std::min(*high, own->end());
  return Bits(*own);
}

// The first and the last byte of a view, and gaps between its runs.
struct Hull {
  uintptr_t block = 0, low = UINTPTR_MAX, high = 0;
};

// Calls see(bits, low, high, stride_mask) for the runs of a view, cut to the allocation in which it
// begins. Returns the hull of the runs.
template <class F>
Hull for_each_run(const Tensor& view, F see) {
  const Runs runs(view);
  uintptr_t end = UINTPTR_MAX;
  std::optional<Bits> bits = bits_of(runs.begin(), &end);
  Hull hull;
  if (!bits) return hull;
  hull.block = bits->begin();
  runs.for_each([&](uintptr_t low, uintptr_t high, uint64_t stride_mask) {
    low = std::max(low, bits->begin()), high = std::min(high, end);
    if (low >= high) return;
    see(*bits, low, high, stride_mask);
    hull.low = std::min(hull.low, low), hull.high = std::max(hull.high, high);
  });
  return hull;
}

void add(Missing* sum, const Missing& more) {
  if (sum->count == 0) sum->first = more.first;
  sum->count += more.count;
  sum->of += more.of;
}

}  // namespace

Runs::Runs(const Tensor& view) {
  const size_t size = dtype_size(view.dtype);
  begin_ = reinterpret_cast<uintptr_t>(view.data) + static_cast<uintptr_t>(view.offset) * size;
  length_ = size;
  for (int i = 0; i < view.shape.rank; ++i) {
    if (view.shape[i] == 1 || view.strides[i] == 0) continue;
    const auto step = static_cast<uintptr_t>(std::abs(view.strides[i])) * size;
    if (view.strides[i] < 0) begin_ -= step * static_cast<uintptr_t>(view.shape[i] - 1);
    int at = rank_++;
    for (; at > 0 && step_[at - 1] > step; --at) {
      step_[at] = step_[at - 1], dim_[at] = dim_[at - 1];
    }
    step_[at] = step, dim_[at] = view.shape[i];
  }
  int merged = 0;
  while (merged < rank_ && step_[merged] <= length_) {
    length_ += step_[merged] * static_cast<uintptr_t>(dim_[merged] - 1);
    ++merged;
  }
  if (merged < rank_ && step_[merged] <= 64 && 64 % step_[merged] == 0) {  // longer than length_
    const uint64_t one = (uint64_t{1} << length_) - 1;
    stride_mask_ = 0;
    for (size_t at = 0; at < 64; at += step_[merged]) stride_mask_ |= one << at;
    length_ += step_[merged] * static_cast<uintptr_t>(dim_[merged] - 1);
    ++merged;
  }
  rank_ -= merged;
  std::copy(step_ + merged, step_ + merged + rank_, step_);
  std::copy(dim_ + merged, dim_ + merged + rank_, dim_);
}

void InitialisedBytes::mark(uintptr_t low, uintptr_t high) {
  std::optional<Bits> bits = bits_of(low, &high);
  if (!bits) return;
  bits->set(low, high);
  forget_remembered(bits->begin(), low, high);
}

void InitialisedBytes::mark(const Tensor& view) {
  const Hull hull =
      for_each_run(view, [](Bits& bits, uintptr_t low, uintptr_t high, uint64_t stride_mask) {
        bits.set(low, high, stride_mask);
      });
  forget_remembered(hull.block, hull.low, hull.high);
}

void InitialisedBytes::unmark(uintptr_t low, uintptr_t high) {
  std::optional<Bits> bits = bits_of(low, &high);
  if (!bits) return;
  bits->clear(low, high);
  forget_remembered(bits->begin(), low, high);
}

void InitialisedBytes::unmark(const Tensor& view) {
  const Hull hull =
      for_each_run(view, [](Bits& bits, uintptr_t low, uintptr_t high, uint64_t stride_mask) {
        bits.clear(low, high, stride_mask);
      });
  forget_remembered(hull.block, hull.low, hull.high);
}

InitialisedBytes::Snapshot InitialisedBytes::snapshot(uintptr_t low, uintptr_t high) const {
  const std::optional<Bits> bits = bits_of(low, &high);
  if (!bits) return {};
  return {bits->begin(), low, high, bits->copy(low, high)};
}

void InitialisedBytes::remember(Snapshot before) {
  if (before.words.empty()) return;
  forget_remembered(before.block, before.low, before.high);
  before_[before.block].push_back(std::move(before));
}

void InitialisedBytes::forget_remembered(uintptr_t block, uintptr_t low, uintptr_t high) {
  const auto known = before_.find(block);
  if (known == before_.end() || low >= high) return;
  std::vector<Snapshot> rest;
  for (Snapshot& snapshot : known->second) {
    if (high <= snapshot.low || snapshot.high <= low) {
      rest.push_back(std::move(snapshot));
      continue;
    }
    if (high < snapshot.high) {
      const auto skipped = (high - block) / 64 - (snapshot.low - block) / 64;
      rest.push_back(
          {block,
           high,
           snapshot.high,
           {snapshot.words.begin() + static_cast<ptrdiff_t>(skipped), snapshot.words.end()}});
    }
    if (snapshot.low < low) {
      snapshot.high = low;
      rest.push_back(std::move(snapshot));
    }
  }
  known->second = std::move(rest);
}

void InitialisedBytes::restore(uintptr_t low, uintptr_t high) {
  std::optional<Bits> bits = bits_of(low, &high);
  if (!bits) return;
  const auto known = before_.find(bits->begin());
  if (known == before_.end()) return;
  for (const Snapshot& snapshot : known->second) {
    const uintptr_t from = std::max(low, snapshot.low), to = std::min(high, snapshot.high);
    if (from < to) bits->restore(from, to, snapshot.low, snapshot.words);
  }
}

void InitialisedBytes::copy(uintptr_t dst, uintptr_t src, size_t count) {
  uintptr_t end = src + count;
  const std::optional<Bits> bits = bits_of(src, &end);
  if (!bits) return;
  std::vector<std::pair<uintptr_t, uintptr_t>> runs;  // source and target may overlap
  for (uintptr_t low = bits->first_with(true, src, end); low < end;) {
    const uintptr_t high = bits->first_with(false, low, end);
    runs.emplace_back(low, high);
    low = high < end ? bits->first_with(true, high, end) : end;
  }
  for (const auto& [low, high] : runs) mark(low - src + dst, high - src + dst);
}

Missing InitialisedBytes::missing(uintptr_t low, uintptr_t high) const {
  const std::optional<Bits> bits = bits_of(low, &high);
  return bits ? bits->missing(low, high) : Missing{};
}

Missing InitialisedBytes::missing(const Tensor& view) const {
  Missing sum;
  for_each_run(view, [&](const Bits& bits, uintptr_t low, uintptr_t high, uint64_t stride_mask) {
    add(&sum, bits.missing(low, high, stride_mask));
  });
  return sum;
}

void InitialisedBytes::mark_gaps(uintptr_t low, uintptr_t high) {
  const std::optional<Bits> bits = bits_of(low, &high);
  if (!bits) return;
  std::vector<Gaps>& all = gaps_[bits->begin()];
  for (Gaps& gap : all) {  // merges adjacent gaps
    if (low > gap.high || gap.low > high) continue;
    gap = {std::min(low, gap.low), std::max(high, gap.high)};
    return;
  }
  all.push_back({low, high});
}

Missing InitialisedBytes::missing_beside_gaps(uintptr_t low, uintptr_t high) const {
  const std::optional<Bits> bits = bits_of(low, &high);
  if (!bits) return {};
  const auto known = gaps_.find(bits->begin());
  if (known == gaps_.end()) return bits->missing(low, high);
  std::vector<Gaps> gaps = known->second;
  std::sort(gaps.begin(), gaps.end(), [](const Gaps& a, const Gaps& b) { return a.low < b.low; });
  Missing sum;
  uintptr_t at = low;
  for (const Gaps& gap : gaps) {
    const uintptr_t until = std::min(gap.low, high);
    if (at < until) add(&sum, bits->missing(at, until));
    at = std::max(at, gap.high);
  }
  if (at < high) add(&sum, bits->missing(at, high));
  sum.of = high - low;
  return sum;
}

}  // namespace openaclnn::check
