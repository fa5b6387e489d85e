// SPDX-License-Identifier: Apache-2.0
// Outputs of at least the threshold in bytes are written with non-temporal stores, as phase 1 of
// each family decides (elementwise.cpp, group_norm_steps.cpp).
#pragma once

#include <cstdint>

namespace openaclnn {

int64_t streaming_threshold();  // OPENACLNN_STREAMING_BYTES, or else kStreamingBytes
void set_streaming_threshold(int64_t bytes);

// RAII: plans of the calling thread use ordinary stores, for outputs in fresh pages, such as XLA's:
// the kernel zeroes a page at its first write, so it is in the cache. 16 Mi fp32 values of
// leaky_relu into fresh pages, relative to jax.nn.leaky_relu: 1.2 with non-temporal stores, 0.8
// with ordinary ones.
class OutputsAreNew {
 public:
  OutputsAreNew();
  ~OutputsAreNew();
  OutputsAreNew(const OutputsAreNew&) = delete;
};

}  // namespace openaclnn
