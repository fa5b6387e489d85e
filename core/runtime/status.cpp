// SPDX-License-Identifier: Apache-2.0
// The pending sentences of each thread, and the text that aclGetRecentErrMsg makes of them.
#include "core/runtime/status.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <ctime>

#include "acl/acl_rt.h"

namespace openaclnn {
namespace {

struct Failure {
  int32_t code;
  timespec time;
  char sentence[1000];
};

// Plain data, without destructors: exit handlers may fail after the thread's objects are gone.
// A thread that never asks keeps its newest kPending failures.
struct Failures {
  static constexpr unsigned kPending = 4;
  static constexpr size_t kDecoration = 120;

  Failure ring[kPending];
  unsigned count;  // ever recorded since they were last taken
  char text[kPending * (sizeof(Failure::sentence) + kDecoration)];

  unsigned pending() const { return count < kPending ? count : kPending; }
  const Failure& newest(unsigned age) const { return ring[(count - 1 - age) % kPending]; }
};

thread_local Failures failures;

struct Headline {
  int32_t first, last;  // status codes
  const char* title;
  const char* code;

  bool external() const { return code[2] != '9'; }  // EZ9999 and EZ9903 are trouble of our own
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
    {207000, 207000, "Not_Supported", "EE1005"},
    {207001, 207999, "Resource_Exhausted", "EE1007"},
    {200000, 300999, "Resource_Error", "EH0005"},
    {500000, 506999, "Inner_Error", "EH9999"},
    {507000, 507999, "Runtime_Inner_Error", "EE9999"},
};
constexpr Headline kUnknown = {0, 0, "Inner_Error", "EH9999"};

// The narrowest range wins, so that single codes may stand out of their family.
const Headline& headline(int32_t code) {
  const Headline* best = &kUnknown;
  for (const Headline& line : kHeadlines) {
    if (code < line.first || code > line.last) continue;
    if (best == &kUnknown || line.last - line.first < best->last - best->first) best = &line;
  }
  return *best;
}

size_t print(const Failure& failure, char* text, size_t size) {
  tm day;
  localtime_r(&failure.time.tv_sec, &day);
  char date[32];
  strftime(date, sizeof date, "%Y-%m-%d-%H:%M:%S", &day);
  const int micros = static_cast<int>(failure.time.tv_nsec / 1000);
  const Headline& line = headline(failure.code);
  const int length =
      snprintf(text, size, "[PID:%d] %s.%03d.%03d %s(%s): %s\n", getpid(), date, micros / 1000,
               micros % 1000, line.title, line.code, failure.sentence);
  return static_cast<size_t>(length);
}

}  // namespace

Status fail(int32_t code, const char* sentence, ...) {
  Failure& failure = failures.ring[failures.count++ % Failures::kPending];
  failure.code = code;
  clock_gettime(CLOCK_REALTIME, &failure.time);
  va_list arguments;
  va_start(arguments, sentence);
  vsnprintf(failure.sentence, sizeof failure.sentence, sentence, arguments);
  va_end(arguments);
  return Status(code);
}

std::string take_sentence() {
  std::string sentence = failures.count > 0 ? failures.newest(0).sentence : "";
  failures.count = 0;
  return sentence;
}

}  // namespace openaclnn

using namespace openaclnn;

// Newest first, except that a mistake of the caller comes before the inner errors it led to.
const char* aclGetRecentErrMsg() {
  char* end = failures.text;
  char* const limit = end + sizeof failures.text;
  *end = '\0';
  unsigned first = 0;
  for (unsigned age = failures.pending(); age-- > 0;) {
    if (headline(failures.newest(age).code).external()) first = age;
  }
  for (unsigned i = 0; i < failures.pending(); ++i) {
    const unsigned age = i == 0 ? first : i <= first ? i - 1 : i;
    end += print(failures.newest(age), end, static_cast<size_t>(limit - end));
  }
  failures.count = 0;
  return failures.text;
}
