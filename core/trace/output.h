// SPDX-License-Identifier: Apache-2.0
// The files of a trace, and text in JSON.
#pragma once

#include <cstdio>
#include <string>

namespace openaclnn::trace {

// Opens the file that the variable names; nullptr: none, or it cannot be written, with a warning.
FILE* open_file(const char* variable);

// Closes the file; warns on stderr if a write failed.
void close_file(FILE* file, const char* variable);

// A file for `openaclnn trace` to find, beside the one that OPENACLNN_TRACE_SEEN names.
void leave_mark(const char* suffix);

std::string quoted(const std::string& text);

// A JSON number if the text is one, so that Perfetto can compare it.
std::string json_value(const std::string& text);

}  // namespace openaclnn::trace
