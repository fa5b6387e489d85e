// SPDX-License-Identifier: Apache-2.0
#include "core/check/happens_before.h"

#include <algorithm>
#include <utility>

#include "core/base/view.h"

namespace openaclnn::check {
namespace {

Tensor bytes_between(uintptr_t low, uintptr_t high) {
  Tensor tensor;
  tensor.dtype = ACL_UINT8;
  tensor.shape.rank = tensor.strides.rank = 1;
  tensor.shape[0] = static_cast<int64_t>(high - low);
  tensor.strides[0] = 1;
  tensor.data = reinterpret_cast<void*>(low);
  return tensor;
}

bool collide(const Access& a, const Access& b) {
  if (!(a.written || b.written) || a.low >= b.high || b.low >= a.high) return false;
  if (a.view == nullptr && b.view == nullptr) return true;
  return views_overlap(a.view != nullptr ? *a.view : bytes_between(a.low, a.high),
                       b.view != nullptr ? *b.view : bytes_between(b.low, b.high));
}

// Whether everything that can conflict with `old` also conflicts with `fresh`, which comes after
// it.
bool covers(const Access& fresh, const Access& old) {
  return fresh.actor == old.actor && fresh.low <= old.low && old.high <= fresh.high &&
         fresh.view == nullptr && (fresh.written || !old.written);
}

}  // namespace

uint32_t HappensBefore::actor_of(const Stream* stream) {
  if (stream == nullptr) return 0;
  const auto [found, fresh] = actors_.try_emplace(stream, static_cast<uint32_t>(clocks_.size()));
  if (fresh) clocks_.emplace_back();
  return found->second;
}

void HappensBefore::join(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

bool HappensBefore::is_known(uint32_t actor, const Access& access) const {
  const Clock& clock = clocks_[actor];
  return access.actor < clock.size() && clock[access.actor] >= access.epoch;
}

void HappensBefore::drop_known(std::vector<Access>& accesses) {
  std::erase_if(accesses, [this](const Access& access) { return is_known(0, access); });
}

void HappensBefore::begin(const Stream* stream) {
  const uint32_t actor = actor_of(stream);
  if (actor != 0) join(clocks_[actor], clocks_[0]);
  Clock& clock = clocks_[actor];
  if (clock.size() <= actor) clock.resize(actor + 1);
  ++clock[actor];
}

const Access* HappensBefore::add(uintptr_t block, Access access) {
  const auto waits_here = [&](const auto& awaited) { return awaited.first == access.stream; };
  access.is_judged = std::none_of(awaited_.begin(), awaited_.end(), waits_here);
  access.actor = actor_of(access.stream);
  access.epoch = clocks_[access.actor][access.actor];
  std::vector<Access>& accesses = accesses_[block];
  drop_known(accesses);
  const Access* collision = nullptr;
  for (const Access& other : accesses) {
    if (!access.is_judged || !other.is_judged) continue;
    if (is_known(access.actor, other) || !collide(access, other)) continue;
    collided_ = other;
    collision = &collided_;
    break;
  }
  if (access.actor == 0) return collision;  // what follows comes after the host
  std::erase_if(accesses, [&](const Access& old) { return covers(access, old); });
  if (accesses.size() == kMostAccesses) accesses.erase(accesses.begin());
  accesses.push_back(std::move(access));
  return collision;
}

const Access* HappensBefore::pending(uintptr_t block, uintptr_t low, uintptr_t high) {
  const auto found = accesses_.find(block);
  if (found == accesses_.end()) return nullptr;
  drop_known(found->second);
  for (const Access& access : found->second) {
    if (access.low < high && low < access.high) return &access;
  }
  return nullptr;
}

void HappensBefore::forget(uintptr_t block, uintptr_t low, uintptr_t high) {
  const auto found = accesses_.find(block);
  if (found == accesses_.end()) return;
  std::erase_if(found->second,
                [&](const Access& access) { return low <= access.low && access.high <= high; });
}

void HappensBefore::synchronised(const Stream* stream) {
  const uint32_t actor = actor_of(stream);
  join(clocks_[0], clocks_[actor]);
  std::erase_if(awaited_, [=](const auto& awaited) { return awaited.first == stream; });
}

void HappensBefore::consumes(const Stream* stream, const void* notify) {
  const auto found = notify == nullptr ? events_.end() : events_.find(notify);
  if (found == events_.end()) return awaited_.push_back({stream, notify});
  join(clocks_[actor_of(stream)], found->second);
  events_.erase(found);
}

void HappensBefore::recorded(const void* event, const Stream* stream) {
  const uint32_t actor = actor_of(stream);
  join(clocks_[actor], clocks_[0]);
  const auto waits_for_it = [=](const auto& awaited) { return awaited.second == event; };
  const auto first = std::find_if(awaited_.begin(), awaited_.end(), waits_for_it);
  if (first == awaited_.end()) {
    events_[event] = clocks_[actor];
    return;
  }
  const uint32_t waiter = actor_of(first->first);
  join(clocks_[waiter], clocks_[actor]);
  awaited_.erase(first);
}

void HappensBefore::waits(const Stream* stream, const void* event) {
  const uint32_t actor = actor_of(stream);
  if (const auto found = events_.find(event); found != events_.end()) {
    join(clocks_[actor], found->second);
  }
}

void HappensBefore::reached(const void* event) {
  if (const auto found = events_.find(event); found != events_.end()) {
    join(clocks_[0], found->second);
    events_.erase(found);  // what follows comes after the host
  }
}

}  // namespace openaclnn::check
