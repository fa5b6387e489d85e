// SPDX-License-Identifier: Apache-2.0
// Lists in sentences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"

namespace openaclnn {

// "a", "a or b", "a, b or c", with the word that joins the last two.
inline std::string listed(const std::vector<std::string>& items, const char* word) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? std::string(" ") + word + " " : ", ";
    text += items[i];
  }
  return text;
}

// "FLOAT, FLOAT16 or DOUBLE" of a set with bit d for aclDataType d.
inline std::string dtype_list(uint64_t dtypes) {
  std::vector<std::string> names;
  for (int d = 0; d < 64; ++d) {
    if ((dtypes >> d & 1) != 0) names.emplace_back(dtype_name(static_cast<aclDataType>(d)));
  }
  return listed(names, "or");
}

}  // namespace openaclnn
