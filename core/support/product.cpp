// SPDX-License-Identifier: Apache-2.0
// The table of products is generated from the rows; an index selects the current one.
#include "core/support/product.h"

#include <strings.h>

#include <atomic>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "acl/acl_rt.h"
#include "aclnn/aclnn_base.h"
#include "core/support/api_guard.h"
#include "core/support/environment.h"
#include "core/support/no_destructor.h"

namespace openaclnn {

#define PRODUCT(key, title, soc_name, has_bfloat16, has_everything) \
  {key, title, soc_name, has_bfloat16, has_everything},
const Product products[] = {
#include "generated/products.inc"
};
#undef PRODUCT
const int product_count = sizeof products / sizeof *products;

struct Chip {
  std::string_view name;  // how its models begin
  const char* product;    // "": none
};
constexpr Chip kChips[] = {
#define CHIP(name, product) {name, product},
#include "generated/chips.inc"
#undef CHIP
};

namespace {

constexpr const char* kDefault = "A2";
constexpr int kUnchosen = -1;
std::atomic<int> chosen = kUnchosen;

// The product of this thread in openaclnn_call_on_product. The counter spares phase 1 the
// thread-local variable while nobody makes such calls.
thread_local int of_thread = kUnchosen;
std::atomic<int> calls_on_products = 0;

int index_of(const char* key) {
  for (int i = 0; i < product_count; ++i) {
    if (strcasecmp(products[i].key, key) == 0) return i;
  }
  return kUnchosen;
}

}  // namespace

bool is_product(const char* key) { return index_of(key) != kUnchosen; }

std::string product_keys() {
  std::string keys;
  for (int i = 0; i < product_count; ++i) {
    if (i > 0) keys += i + 1 < product_count ? ", " : " or ";
    keys += products[i].key;
  }
  return keys;
}

std::string chip_hint(const char* text) {
  std::string name;  // "Ascend 910 Pro B" is 910PROB
  for (const char* c = text; *c != '\0'; ++c) {
    const auto letter = static_cast<unsigned char>(*c);
    if (std::isalnum(letter) || *c == '_') name += static_cast<char>(std::toupper(letter));
  }
  if (name.starts_with("ASCEND")) name.erase(0, 6);
  for (const Chip& chip : kChips) {
    if (!name.starts_with(chip.name)) continue;
    const std::string start = "; " + std::string(text);
    return *chip.product == '\0' ? start + " is not among the products"
                                 : start + " is product " + chip.product;
  }
  return "";
}

int current_product() {
  if (calls_on_products.load(std::memory_order_relaxed) != 0 && of_thread != kUnchosen) [[unlikely]]
    return of_thread;
  int index = chosen.load(std::memory_order_relaxed);
  if (index != kUnchosen) return index;
  const char* wish = std::getenv("OPENACLNN_PRODUCT");
  index = wish == nullptr ? kUnchosen : index_of(wish);
  if (index == kUnchosen) {
    index = index_of(kDefault);
  }
  int before = kUnchosen;  // set_product of another thread has priority
  if (!chosen.compare_exchange_strong(before, index)) return before;
  if (wish != nullptr && *wish != '\0' && index_of(wish) == kUnchosen) {
    warn_environment("OPENACLNN_PRODUCT", product_keys().c_str(), wish, kDefault,
                     chip_hint(wish).c_str());
  }
  return index;
}

Status set_product(const char* key) {
  if (key == nullptr) {
    return fail(ACLNN_ERR_PARAM_NULLPTR, Reason::null_argument, "set_product",
                "product must not be NULL");
  }
  const int index = index_of(key);
  if (index == kUnchosen) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, "set_product",
                "product must be %s, but got \"%s\"%s", product_keys().c_str(), key,
                chip_hint(key).c_str());
  }
  chosen.store(index, std::memory_order_relaxed);
  return {};
}

}  // namespace openaclnn

using namespace openaclnn;

int32_t openaclnn_call_on_product(const char* key, int32_t (*call)(void* argument), void* argument,
                                  char* sentence, size_t size) {
  const int index = index_of(key);
  if (index == kUnchosen) return -1;
  const FailuresSetAside aside;
  const int before = std::exchange(of_thread, index);
  calls_on_products.fetch_add(1, std::memory_order_relaxed);
  const int32_t result = call(argument);
  calls_on_products.fetch_sub(1, std::memory_order_relaxed);
  of_thread = before;
  if (result != 0) openaclnn_newest_sentence(sentence, size);
  return result;
}

bool openaclnn_is_on_product() { return of_thread != kUnchosen; }

const char* openaclnn_product_key() { return products[current_product()].key; }

const char* aclrtGetSocName() {
  static constinit NoDestructor<const char*> copy;  // setenv may invalidate getenv's pointer
  const char* wish = copy.get([]() -> const char* {
    const char* value = std::getenv("OPENACLNN_SOC_NAME");
    return value == nullptr ? nullptr : strdup(value);
  });
  if (wish != nullptr) return *wish == '\0' ? nullptr : wish;
  return guarded("aclrtGetSocName", ACL_ERROR_RT_MEMORY_ALLOCATION,
                 [] { return products[current_product()].soc_name; });
}
