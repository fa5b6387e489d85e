// SPDX-License-Identifier: Apache-2.0
#include "core/trace/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace openaclnn::trace {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

// Columns: bytes that begin a character in UTF-8.
bool begins(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

std::string cut(const std::string& line, size_t width) {
  size_t columns = 0, end = 0;
  for (size_t at = 0; at < line.size(); ++at) {
    if (!begins(line[at])) continue;
    if (++columns == width) end = at;
  }
  return columns <= width ? line : line.substr(0, end) + "…";
}

}  // namespace

Terminal::Terminal(FILE* file) {
  if (isatty(fileno(file)) == 0) return;
  winsize size{};
  const bool known = ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  width_ = known ? size.ws_col : 80;
  const char* type = std::getenv("TERM");
  colour_ = !is_set("NO_COLOR") && (type == nullptr || std::strcmp(type, "dumb") != 0);
}

std::string Terminal::with_short_names(const std::string& line) {
  std::string text;
  size_t at = 0;
  for (size_t found; (found = line.find("0x", at)) != std::string::npos;) {
    size_t end = line.find_first_not_of("0123456789abcdef", found + 2);
    if (end == std::string::npos) end = line.size();
    const auto [name, fresh] = names_.try_emplace(line.substr(found, end - found));
    if (fresh) name->second = "#" + std::to_string(names_.size());
    text += line.substr(at, found - at) + name->second;
    at = end;
  }
  return text + line.substr(at);
}

std::string Terminal::shown(const std::string& line, bool failed) {
  const std::string text = with_short_names(line);
  if (!failed) return cut(text, width_);
  return colour_ ? "\033[31m" + text + "\033[0m" : text;
}

}  // namespace openaclnn::trace
