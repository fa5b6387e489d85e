// SPDX-License-Identifier: Apache-2.0
#include "core/check/written.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "core/base/dtype.h"
#include "core/base/view.h"
#include "core/check/allocations.h"

namespace openaclnn::check {
namespace {

// Calls see(word, mask) for the words that hold the bits of [low, high), until it returns false.
template <class F>
void for_each_word(uintptr_t low, uintptr_t high, F see) {
  while (low < high) {
    const uintptr_t next = std::min(high, (low / 64 + 1) * 64);
    const uint64_t many = next - low == 64 ? ~uint64_t{0} : (uint64_t{1} << (next - low)) - 1;
    if (!see(bits_at(low), many << low % 64)) return;
    low = next;
  }
}

// The first address in [low, high) whose bit is `value`, or high.
uintptr_t first_with(bool value, uintptr_t low, uintptr_t high) {
  uintptr_t found = high;
  for_each_word(low, high, [&](const uint64_t* word, uint64_t mask) {
    const uint64_t hits = (value ? *word : ~*word) & mask;
    if (hits == 0) return true;
    const auto at = (low / 64 + static_cast<size_t>(word - bits_at(low))) * 64;
    found = at + static_cast<size_t>(std::countr_zero(hits));
    return false;
  });
  return found;
}

// The live allocation of device memory there, or nullptr; *high is cut to its end.
const Block* live_block(uintptr_t low, uintptr_t* high) {
  const void* address = reinterpret_cast<void*>(low);
  const Block* own = is_device_address(address) ? block_at(address) : nullptr;
  if (own == nullptr || !own->live || low >= own->end()) return nullptr;
  *high = std::min(*high, own->end());
  return own;
}

void set(uintptr_t low, uintptr_t high) {
  for_each_word(low, high, [](uint64_t* word, uint64_t mask) {
    *word |= mask;
    return true;
  });
}

Missing count_missing(uintptr_t low, uintptr_t high) {
  Missing found{low, 0, high - low};
  const uintptr_t first = first_with(false, low, high);
  if (first == high) return found;
  found.first = first;
  for_each_word(first, high, [&](const uint64_t* word, uint64_t mask) {
    found.count += static_cast<size_t>(std::popcount(~*word & mask));
    return true;
  });
  return found;
}

// Calls see(low, high) for the runs of a view, cut to the allocation where it begins.
template <class F>
void for_each_run(const Tensor& view, F see) {
  const Runs runs(view);
  uintptr_t end = UINTPTR_MAX;
  const Block* own = live_block(runs.begin(), &end);
  if (own == nullptr) return;
  runs.for_each([&](uintptr_t low, uintptr_t high) {
    low = std::max(low, own->begin), high = std::min(high, end);
    if (low < high) see(low, high);
  });
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
  rank_ -= merged;
  std::copy(step_ + merged, step_ + merged + rank_, step_);
  std::copy(dim_ + merged, dim_ + merged + rank_, dim_);
}

void Written::mark(uintptr_t low, uintptr_t high) {
  if (live_block(low, &high) != nullptr) set(low, high);
}

void Written::mark(const Tensor& view) { for_each_run(view, set); }

void Written::copy(uintptr_t dst, uintptr_t src, size_t count) {
  uintptr_t end = src + count;
  if (live_block(src, &end) == nullptr) return;
  std::vector<std::pair<uintptr_t, uintptr_t>> runs;  // they may overlap where they go
  for (uintptr_t low = first_with(true, src, end); low < end;) {
    const uintptr_t high = first_with(false, low, end);
    runs.emplace_back(low, high);
    low = first_with(true, high, end);
  }
  for (const auto& [low, high] : runs) mark(low - src + dst, high - src + dst);
}

Missing Written::missing(uintptr_t low, uintptr_t high) const {
  return live_block(low, &high) != nullptr ? count_missing(low, high) : Missing{};
}

Missing Written::missing(const Tensor& view) const {
  Missing sum;
  for_each_run(view, [&](uintptr_t low, uintptr_t high) { add(&sum, count_missing(low, high)); });
  return sum;
}

void Written::mark_gaps(uintptr_t low, uintptr_t high) {
  const Block* own = live_block(low, &high);
  if (own == nullptr) return;
  std::vector<Gaps>& all = gaps_[own->begin];
  for (Gaps& each : all) {  // what meets is one
    if (low > each.high || each.low > high) continue;
    each = {std::min(low, each.low), std::max(high, each.high)};
    return;
  }
  all.push_back({low, high});
}

Missing Written::missing_beside_gaps(uintptr_t low, uintptr_t high) const {
  const Block* own = live_block(low, &high);
  if (own == nullptr) return {};
  const auto known = gaps_.find(own->begin);
  if (known == gaps_.end()) return missing(low, high);
  std::vector<Gaps> gaps = known->second;
  std::sort(gaps.begin(), gaps.end(), [](const Gaps& a, const Gaps& b) { return a.low < b.low; });
  Missing sum;
  uintptr_t at = low;
  for (const Gaps& each : gaps) {
    if (at < std::min(each.low, high)) add(&sum, missing(at, std::min(each.low, high)));
    at = std::max(at, each.high);
  }
  if (at < high) add(&sum, missing(at, high));
  sum.of = high - low;
  return sum;
}

}  // namespace openaclnn::check
