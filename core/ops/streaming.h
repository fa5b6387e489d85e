// SPDX-License-Identifier: Apache-2.0
// Streaming: outputs of at least the threshold in bytes are stored past the caches. Phase 1 of each
// family decides it for a call (elementwise.cpp, group_norm.cpp).
#pragma once

#include <cstdint>

namespace openaclnn {

int64_t streaming_threshold();  // OPENACLNN_STREAMING_BYTES, or else kStreamingBytes
void set_streaming_threshold(int64_t bytes);

}  // namespace openaclnn
