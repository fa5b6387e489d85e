// SPDX-License-Identifier: Apache-2.0
#include "core/trace/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/support/environment.h"

namespace openaclnn::trace {

FILE* open_file(const char* variable) {
  const char* path = std::getenv(variable);
  if (path == nullptr || *path == '\0') return nullptr;
  FILE* file = std::fopen(path, "w");
  if (file == nullptr) warn_environment(variable, "a file that can be written", path, "no file");
  if (file != nullptr) setvbuf(file, nullptr, _IOLBF, 1 << 16);  // whole lines after a crash
  return file;
}

void leave_mark(const char* suffix) {
  const char* seen = std::getenv("OPENACLNN_TRACE_SEEN");
  if (seen == nullptr || *seen == '\0') return;
  const int mark =
      ::open((std::string(seen) + suffix).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (mark >= 0) ::close(mark);
}

// errno is that of the last writes.
void close_file(FILE* file, const char* variable) {
  const bool failed = std::ferror(file) != 0;
  if (std::fclose(file) == 0 && !failed) return;
  const char* path = std::getenv(variable);
  std::fprintf(stderr, "openaclnn trace: %s could not be written: %s\n",
               path != nullptr ? path : variable, std::strerror(errno != 0 ? errno : EIO));
  leave_mark(".lost");
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return result + "\"";
}

std::string json_value(const std::string& text) {
  const size_t sign = text.rfind('-', 0) == 0 ? 1 : 0;
  const bool number = text.size() > sign && text.size() - sign <= 15 &&
                      text.find_first_not_of("0123456789", sign) == std::string::npos &&
                      (text[sign] != '0' || text.size() == sign + 1);
  return number ? text : quoted(text);
}

}  // namespace openaclnn::trace
