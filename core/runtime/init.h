// SPDX-License-Identifier: Apache-2.0
// The configuration of aclInit, a JSON file.
#pragma once

#include <string>
#include <string_view>

namespace openaclnn {

// Whether the configuration asks for dumps of tensors.
bool wants_dump();

// ---- as much JSON as a configuration file needs ----

// Sets *text to the document without whitespace between tokens; on failure to the error and its
// position.
bool compact_json(std::string_view document, std::string* text);

// The value of a key of a compact object, as written; empty if the key or the object is missing.
std::string_view json_member(std::string_view object, std::string_view key);

}  // namespace openaclnn
