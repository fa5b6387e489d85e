// SPDX-License-Identifier: Apache-2.0
// Shapes that go together, and attributes that go with them.
#pragma once

#include <vector>

#include "fuzz.h"
#include "tensors.h"

namespace fuzz {

// One shape for each tensor of the row.
void good_shapes(Random& random, const Row& row, std::vector<Dims>& shapes);

// A value of the attribute that goes with the shapes of the tensors.
int64_t good_integer(Random& random, const Row& row, const char* attribute,
                     const std::vector<Given>& tensors);

}  // namespace fuzz
