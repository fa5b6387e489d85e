// SPDX-License-Identifier: Apache-2.0
// Lists in sentences.
#pragma once

#include <string>
#include <vector>

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

}  // namespace openaclnn
