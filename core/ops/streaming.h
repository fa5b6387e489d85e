// SPDX-License-Identifier: Apache-2.0
// Streaming: outputs of at least the threshold in bytes are stored past the caches. Phase 1 of each
// family decides it for a call (elementwise.cpp, group_norm.cpp).
#pragma once

#include <cstdint>

namespace openaclnn {

int64_t streaming_threshold();  // OPENACLNN_STREAMING_BYTES, or else kStreamingBytes
void set_streaming_threshold(int64_t bytes);

// While it lives, plans of the calling thread do not stream, because the outputs lie in pages that
// nobody has touched, as those of XLA do. The system zeroes such a page when it is first written,
// so the page is already in the cache. Writing 16 Mi fp32 values of leaky_relu into new pages takes
// 1.2 times as long as jax.nn.leaky_relu with streaming stores, and 0.8 times with ordinary ones.
class OutputsAreNew {
 public:
  OutputsAreNew();
  ~OutputsAreNew();
  OutputsAreNew(const OutputsAreNew&) = delete;
};

}  // namespace openaclnn
