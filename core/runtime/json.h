// SPDX-License-Identifier: Apache-2.0
// As much JSON as a configuration file needs: is it valid, and do two files say the same?
#pragma once

#include <string>
#include <string_view>

namespace openaclnn {

// The document without the blanks between its tokens. On failure `*text` says what is wrong, and
// where.
bool compact_json(std::string_view document, std::string* text);

}  // namespace openaclnn
