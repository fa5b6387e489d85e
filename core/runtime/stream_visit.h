// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>

namespace openaclnn {

// Held while streams are visited, so that none of them is destroyed meanwhile.
std::mutex& visiting();

}  // namespace openaclnn
