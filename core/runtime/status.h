// SPDX-License-Identifier: Apache-2.0
// Errors are values inside the core, plus one sentence for people.
//
//   if (x == nullptr) return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: x must not be NULL", name);
//
// The sentence is kept for the calling thread until aclGetRecentErrMsg (or the Python binding)
// takes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>

namespace openaclnn {

// Called when a C function returns this code, or NULL (0). Notifies the observer of the newest
// failure, unless it was reported already.
void notify_status(int32_t code);

// Call site in a language whose frames only its binding knows.
struct Caller {
  char function[160];
  char file[256];
  int line;
};
// notify_status for a binding that is about to raise this thread's newest failure. `where` is
// called only if an observer is installed.
void notify_status_at(Caller (*where)());

class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr explicit Status(int32_t code) : code_(code) {}
  constexpr bool ok() const { return code_ == 0; }
  // The return value of a C function.
  constexpr int32_t code() const {
    if (code_ != 0) [[unlikely]]
      notify_status(code_);
    return code_;
  }
  // The return value of a C function that returns a pointer.
  std::nullptr_t null() const {
    if (code_ != 0) [[unlikely]]
      notify_status(0);
    return nullptr;
  }

 private:
  int32_t code_ = 0;
};

// Records a failure of this thread and returns its code as a Status.
[[gnu::format(printf, 2, 3)]] Status fail(int32_t code, const char* sentence, ...);

// Like `fail`, for a failure that programs may ignore: the next failure replaces it.
[[gnu::format(printf, 2, 3)]] Status fail_mildly(int32_t code, const char* sentence, ...);

// Prefixes this thread's newest sentence and replaces its code.
//
//   return prefix_newest(ACLNN_ERR_RUNTIME_ERROR, "%s: stream must be a live stream: ", name);
[[gnu::format(printf, 2, 3)]] Status prefix_newest(int32_t code, const char* prefix, ...);

// Returns this thread's newest sentence, or "", and clears all pending ones.
std::string take_sentence();

// Clears this thread's pending failures with this code, also for aclrtGetLastError. For a missing
// precondition that now holds, such as a current context.
void withdraw(int32_t code);

// Lets all threads of the process see one another's sentences from now on (err_msg_mode of
// aclInit).
void share_sentences();

// Returns whether phase 1 of operators leaves its refusals to phase 2, where they are failures of
// the stream.
bool refusals_deferred();

// ---- the text of aclGetRecentErrMsg (message_text.cpp) ----

// Whether the caller can correct what led to this code.
bool is_callers_mistake(int32_t code);
// Prints the line of a failure, at most kDecoration characters longer than its sentence.
inline constexpr size_t kDecoration = 120;
size_t print_message(int32_t code, const timespec& time, const char* sentence, char* text,
                     size_t size);

}  // namespace openaclnn

// Enables that, for callers that cannot go on after a refusal in phase 1.
extern "C" void openaclnn_defer_refusals();

// Copies the newest sentence, truncated to the size, without clearing it.
extern "C" void openaclnn_newest_sentence(char* text, size_t size);
