// SPDX-License-Identifier: Apache-2.0
// Environment variables. An invalid value is reported on stderr once, so that a typo is noticed.
#pragma once

#include <cstdint>

namespace openaclnn {

// A whole number in [low, high]; `otherwise` if the variable is unset or invalid.
int64_t environment_number(const char* name, int64_t low, int64_t high, int64_t otherwise);

// A number of bytes, at least 1, such as 4096, 512MiB or 64GiB; `otherwise` as above, which a
// warning calls `used`.
uint64_t environment_bytes(const char* name, uint64_t otherwise, const char* used);

// openaclnn: OPENACLNN_ISA must be v2, v3 or v4, but is "v9"; v4 is used
void warn_environment(const char* name, const char* must_be, const char* value, const char* used);

}  // namespace openaclnn
