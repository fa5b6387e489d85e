// SPDX-License-Identifier: Apache-2.0
// From how many bytes of output on a pass stores past the cache.
#pragma once

#include <cstdint>

namespace openaclnn {

int64_t streaming_threshold();  // OPENACLNN_STREAMING_BYTES, or else kStreamingBytes
void set_streaming_threshold(int64_t bytes);

}  // namespace openaclnn
