// SPDX-License-Identifier: Apache-2.0
// The text of a trace on a terminal: a call is one line, addresses have short names, failures are
// red and complete. In a file the text is complete and plain.
#pragma once

#include <cstdio>
#include <string>
#include <unordered_map>

namespace openaclnn::trace {

class Terminal {
 public:
  Terminal() = default;
  explicit Terminal(FILE* file);  // whatever it is

  bool is_one() const { return width_ > 0; }
  // The line without its end, as the terminal shows it.
  std::string shown(const std::string& line, bool failed);

 private:
  std::string with_short_names(const std::string& line);

  size_t width_ = 0;  // columns; 0: no terminal
  bool colour_ = false;
  std::unordered_map<std::string, std::string> names_;  // by address
};

}  // namespace openaclnn::trace
