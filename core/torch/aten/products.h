// SPDX-License-Identifier: Apache-2.0
// What products accept: the entries of src/openaclnn/aten/products as plain data, and the check of
// phase 1. Product any accepts everything.
#pragma once

#include <cstdint>

namespace openaclnn::aten {

struct Call;

struct ProductRule {
  uint8_t products;  // bit i: products[i] of core/support/product.h
  int8_t parameter;
  int8_t like;      // the parameter whose dtype it must have, or -1
  bool contiguous;  // the last two dims may be swapped
  uint64_t ranks;   // bit r: rank r
  uint64_t dtypes;  // bit d: aclDataType d
};

struct ProductRules {
  uint8_t products;  // that have the function
  const ProductRule* rules;
  int count;
};

extern const ProductRules product_rules[];  // in the order of the rows

// The product whose rules apply; -1 for none.
int product_in_force();
// Throws a Refusal where that product lacks the function or refuses a dtype, a rank or strides.
void check_product(const Call& call, int product);

}  // namespace openaclnn::aten
