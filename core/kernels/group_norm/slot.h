// SPDX-License-Identifier: Apache-2.0
// A work item keeps u in a slot between the sweeps of GroupNormSwishGrad.
#pragma once

#include "core/kernels/group_norm/partition.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// RAII: a slot of the workspace, if one is free.
class Slot {
 public:
  Slot(const GroupNormCall& call, void* workspace)
      : taken_(reinterpret_cast<uint64_t*>(static_cast<char*>(workspace) + call.taken)) {
    for (int i = 0; i < call.slots; ++i) {
      const uint64_t bit = uint64_t{1} << i;
      if ((__atomic_fetch_or(taken_, bit, __ATOMIC_ACQUIRE) & bit) != 0) continue;
      bit_ = bit;
      const int64_t size = call.group_batch * (call.channels / call.groups) * pitch(call);
      data_ = reinterpret_cast<float*>(static_cast<char*>(workspace) + call.cache) + i * size;
      return;
    }
  }
  ~Slot() {
    if (bit_ != 0) __atomic_fetch_and(taken_, ~bit_, __ATOMIC_RELEASE);
  }
  Slot(const Slot&) = delete;

  float* data() const { return data_; }  // rows of pitch(call)
  static int64_t pitch(const GroupNormCall& call) { return round_up(call.positions, kLanes); }

 private:
  uint64_t* taken_;
  uint64_t bit_ = 0;
  float* data_ = nullptr;
};

inline void group_norm_free_slots(const void* given, void* workspace, int64_t, int64_t) {
  const GroupNormCall& call = group_norm_call(given);
  __atomic_store_n(reinterpret_cast<uint64_t*>(static_cast<char*>(workspace) + call.taken),
                   uint64_t{0}, __ATOMIC_RELEASE);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
