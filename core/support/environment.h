// SPDX-License-Identifier: Apache-2.0
// Environment variables, listed with their rules in variables.cpp. An invalid value and a misspelt
// name are reported on stderr once.
#pragma once

#include <cstdint>
#include <string>

namespace openaclnn {

// A whole number in the range of the variable; `otherwise` if the variable is unset or invalid.
int64_t environment_number(const char* name, int64_t otherwise);

// A number of bytes, at least 1, such as 4096, 512MiB or 64GiB; `otherwise` as above, which a
// warning calls `used`.
uint64_t environment_bytes(const char* name, uint64_t otherwise, const char* used);

// OPENACLNN_DEVICES must be a whole number from 0 to 64, but is "abc". Empty if the value is valid,
// or the variable has no rule.
std::string variable_problem(const char* name, const char* value);

// openaclnn: OPENACLNN_ISA must be v2, v3 or v4, but is "v9"; v4 is used
// The hint comes before the last semicolon: "; 910B is product A2".
void warn_environment(const char* name, const char* must_be, const char* value, const char* used,
                      const char* hint = "");

}  // namespace openaclnn
