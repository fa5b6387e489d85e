// SPDX-License-Identifier: Apache-2.0
// Names of calls without a generated function.
#pragma once

#include <string>

namespace openaclnn::trace {

// Returns a copy of the text that is never freed: a trace keeps the names of its calls.
const char* lasting(std::string name);

}  // namespace openaclnn::trace
