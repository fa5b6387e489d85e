// SPDX-License-Identifier: Apache-2.0
// Names of calls that no generated function spells out.
#pragma once

#include <string>

namespace openaclnn::trace {

// Returns the text in memory that lives as long as the process: a trace keeps the names of its
// calls.
const char* lasting(std::string name);

}  // namespace openaclnn::trace
