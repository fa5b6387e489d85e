// SPDX-License-Identifier: Apache-2.0
// Group norm once more, as plain loops, and values of every magnitude for it.
#pragma once

#include "cases.h"

namespace fuzz {

// Gives the inputs and attributes of a group norm row sizes from all of fp32, some of them
// specials.
void resize_group_norm(Random& random, Case& c);
// Every output within the promised share of the sum of its absolute terms.
void check_group_norm(const Case& c, const std::vector<Given>& results);

}  // namespace fuzz
