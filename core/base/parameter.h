// SPDX-License-Identifier: Apache-2.0
// What a parameter of an operator is. Bindings that are compiled later include it through
// core/ops/direct.h, so it includes nothing of the library.
#pragma once

#include <cstdint>

namespace openaclnn {

enum class Kind : uint8_t { tensor, scalar, real, integer, flag, text };
enum class Role : uint8_t { input, output, inout, attribute };

inline constexpr int kMaxRank = 8;  // of a tensor that an operator takes

}  // namespace openaclnn
