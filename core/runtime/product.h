// SPDX-License-Identifier: Apache-2.0
// The imitated product: which operators and dtypes are accepted. It never changes a result.
#pragma once

#include <cstdint>

#include "core/runtime/status.h"

namespace openaclnn {

struct Product {
  const char* key;       // "A2": what OPENACLNN_PRODUCT and set_product take
  const char* title;     // "Atlas A2 training / Atlas 800I A2 inference"
  const char* soc_name;  // what aclrtGetSocName returns
  bool has_bfloat16;
  bool has_everything;  // "any": whatever the library computes
};

extern const Product products[];  // from PRODUCTS and ANY in table.py
extern const int product_count;

int current_product();  // index into products: A2, or OPENACLNN_PRODUCT, or what set_product chose
Status set_product(const char* key);

}  // namespace openaclnn
