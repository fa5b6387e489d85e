// SPDX-License-Identifier: Apache-2.0
// What aclInit reads: its configuration, a JSON file.
#pragma once

#include <string>
#include <string_view>

namespace openaclnn {

// The configuration of aclInit asks for the tensors of operators to be written to files.
bool wants_dump();

// ---- as much JSON as a configuration file needs ----

// The document without the blanks between its tokens. On failure `*text` says what is wrong, and
// where.
bool compact_json(std::string_view document, std::string* text);

// The value of a key of a compact object, as written; empty when there is none, or no object.
std::string_view json_member(std::string_view object, std::string_view key);

}  // namespace openaclnn
