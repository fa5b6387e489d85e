// SPDX-License-Identifier: Apache-2.0
// The imitated product: which operators and dtypes are accepted. It never changes a result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/support/status.h"

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

bool is_product(const char* key);  // in any case
std::string product_keys();        // "910, A2, A3, 310P, 310B or any"
// "; 910B1 is product A2" where the text names a chip, else empty.
std::string chip_hint(const char* text);

int current_product();  // index into products: A2, or OPENACLNN_PRODUCT, or what set_product chose
Status set_product(const char* key);

}  // namespace openaclnn

// Makes the call with another product, for the report of a run: it leaves neither an error of this
// thread nor a report of check mode. Copies its sentence if it fails; -1: no such product.
extern "C" int32_t openaclnn_call_on_product(const char* key, int32_t (*call)(void* argument),
                                             void* argument, char* sentence, size_t size);
// Whether this thread is within such a call.
extern "C" bool openaclnn_is_on_product();
// The key of the current product, or of a call on another one.
extern "C" const char* openaclnn_product_key();
