// SPDX-License-Identifier: Apache-2.0
// As much JSON as a configuration file needs: is it valid, and do two files say the same?
#pragma once

#include <string>
#include <string_view>

namespace openaclnn {

// The document without the blanks between its tokens. On failure `*text` says what is wrong, and
// where.
bool compact_json(std::string_view document, std::string* text);

// The value of a key of a compact object, as written; empty when there is none, or no object.
std::string_view json_member(std::string_view object, std::string_view key);

}  // namespace openaclnn
