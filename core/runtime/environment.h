// SPDX-License-Identifier: Apache-2.0
// Environment variables of the library. An unusable value is reported on stderr, once: a typo
// in the settings of a test run must not pass for the default in silence.
#pragma once

#include <cstdint>

namespace openaclnn {

// A whole number in [low, high], or `otherwise` when the variable is not set or cannot be used.
int64_t environment_number(const char* name, int64_t low, int64_t high, int64_t otherwise);

// openaclnn: OPENACLNN_ISA must be v2, v3 or v4, but is "v9"; v4 is used
void warn_environment(const char* name, const char* must_be, const char* value, const char* used);

}  // namespace openaclnn
