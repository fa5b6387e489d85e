// SPDX-License-Identifier: Apache-2.0
// The lines that aclGetRecentErrMsg returns.
#include <unistd.h>

#include <cstdio>
#include <ctime>

#include "core/support/status.h"

namespace openaclnn {
namespace {

struct Headline {
  int32_t first, last;  // status codes
  const char* title;
  const char* code;
};

// E + layer (Z operators, H acl, E runtime) + number.
constexpr Headline kHeadlines[] = {
    {161001, 161002, "AclNN_Parameter_Error", "EZ1001"},
    {361001, 361001, "AclNN_Runtime_Error", "EZ9903"},
    {561000, 561999, "AclNN_Inner_Error", "EZ9999"},
    {100003, 100003, "Invalid_Path", "EH0003"},
    {100004, 100010, "Invalid_File_Content", "EH0004"},
    {100000, 148999, "Invalid_Argument", "EH0001"},
    {107000, 107999, "Invalid_Argument", "EE1001"},
    {107019, 107019, "Wait_Timeout", "EE1002"},
    {507046, 507047, "Wait_Timeout", "EE1002"},
    {100036, 100036, "Wait_Timeout", "EH0010"},
    {200001, 200001, "Not_Supported", "EH0006"},
    {207000, 207000, "Not_Supported", "EE1005"},
    {207001, 207999, "Resource_Exhausted", "EE1007"},
    {200000, 300999, "Resource_Error", "EH0005"},
    {500000, 506999, "Inner_Error", "EH9999"},
    {507000, 507999, "Runtime_Inner_Error", "EE9999"},
};
constexpr Headline kUnknown = {0, 0, "Inner_Error", "EH9999"};

// The narrowest range that contains the code.
const Headline& headline(int32_t code) {
  const Headline* best = &kUnknown;
  for (const Headline& line : kHeadlines) {
    if (code < line.first || code > line.last) continue;
    if (best == &kUnknown || line.last - line.first < best->last - best->first) best = &line;
  }
  return *best;
}

}  // namespace

// EZ9999 and EZ9903 are errors of the library.
bool is_callers_mistake(int32_t code) { return headline(code).code[2] != '9'; }

size_t print_message(int32_t code, const timespec& time, const char* sentence, char* text,
                     size_t size) {
  tm day;
  localtime_r(&time.tv_sec, &day);
  char date[32];
  strftime(date, sizeof date, "%Y-%m-%d-%H:%M:%S", &day);
  const int micros = static_cast<int>(time.tv_nsec / 1000);
  const Headline& line = headline(code);
  const int length = snprintf(text, size, "[PID:%d] %s.%03d.%03d %s(%s): %s\n", getpid(), date,
                              micros / 1000, micros % 1000, line.title, line.code, sentence);
  return static_cast<size_t>(length);
}

}  // namespace openaclnn
