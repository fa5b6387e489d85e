// SPDX-License-Identifier: Apache-2.0
// Names of calls that no generated function spells out.
#pragma once

#include <string>

namespace openaclnn::trace {

// The same text, which lives as long as the process: a trace keeps the names of its calls.
const char* lasting(std::string name);

}  // namespace openaclnn::trace
