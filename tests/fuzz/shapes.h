// SPDX-License-Identifier: Apache-2.0
// Shapes that go together, by the family of an operator.
#pragma once

#include <vector>

#include "fuzz.h"
#include "tensors.h"

namespace fuzz {

// One shape for each tensor of the row; false where the family's rules are not known here, so that
// a refusal says nothing.
bool good_shapes(Random& random, const Row& row, std::vector<Dims>& shapes);

double good_real(Random& random, const Row& row);

// A number that goes with the shapes of the tensors.
int64_t good_integer(Random& random, const Row& row, const std::vector<Given>& tensors);

}  // namespace fuzz
