// SPDX-License-Identifier: Apache-2.0
// What the fuzzer knows about a family beyond its rows: an object of its name in
// families/<name>.cpp, which the rows refer to and families.inc declares.
#pragma once

#include <vector>

#include "cases.h"

namespace fuzz {

struct Family {
  // Attributes that phase 1 accepts. Without a function integers are the size of that name, if
  // there is one, or small.
  double (*good_real)(Random& random);
  int64_t (*good_integer)(Random& random, const Case& c);
  // Other values for a case of ordinary numbers, from all of fp32; nullptr: none.
  void (*resize)(Random& random, Case& c);
  // Compares the results of an accepted call with the formula, written independently of the
  // kernels.
  void (*check)(const Case& c, const std::vector<Given>& results);
};

}  // namespace fuzz
