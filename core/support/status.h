// SPDX-License-Identifier: Apache-2.0
// Errors are values inside the core, plus one sentence for people.
//
//   if (x == nullptr)
//     return fail(ACLNN_ERR_PARAM_NULLPTR, {Reason::null_argument, ObjectKind::tensor}, name,
//                 "x must not be NULL");
//
// The sentence, headed by the call, is kept for the calling thread until aclGetRecentErrMsg (or the
// Python binding) takes it. Code asks for the cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>

#include "core/support/reason.h"

namespace openaclnn {

// Called when a C function returns this code, or NULL (0). Notifies the observer of the newest
// failure, unless it was reported already.
void notify_status(int32_t code);

// A failure as the observer gets it.
struct ReportedFailure {
  int32_t code;  // that the call returns; 0: NULL
  Cause cause;
  std::string_view call;  // "" where only the stack shows it
  std::string_view sentence;
};

// The place of a call in a language whose frames only its binding knows.
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
  friend Status with_call(Status status, const char* call);
  int32_t code_ = 0;
};

// Records this thread's newest failure and returns its code as a value. `call` heads the sentence;
// nullptr where the caller adds it (with_call).
[[gnu::format(printf, 4, 5)]] Status fail(int32_t code, Cause cause, const char* call,
                                          const char* sentence, ...);

// Does what `fail` does for a failure that programs may ignore: the next failure replaces it.
[[gnu::format(printf, 4, 5)]] Status fail_mildly(int32_t code, Cause cause, const char* call,
                                                 const char* sentence, ...);

// Puts the call before the newest sentence of this thread and gives it that code; older ones stay.
Status with_call(Status status, const char* call);

// A failure that is reported later, or by another thread.
struct TakenFailure {
  int32_t code = 0;
  Cause cause;
  std::string call, sentence;  // the sentence without the call
};
// The newest of this thread, behind a call that returned the code; forgets all pending ones.
TakenFailure take_failure(int32_t code);
Status fail(const TakenFailure& failure);

// RAII: this thread has no pending failures, and afterwards those that it had before. Check mode
// reports none of those in between.
class FailuresSetAside {
 public:
  FailuresSetAside();
  ~FailuresSetAside();
  FailuresSetAside(const FailuresSetAside&) = delete;

 private:
  struct State;
  std::unique_ptr<State> before_;
};

// Returns this thread's newest sentence, or "", and clears all pending ones.
std::string take_sentence();

// Clears this thread's pending failures with this code, also for aclrtGetLastError. For a missing
// precondition that now holds, such as a current context.
void withdraw(int32_t code);

// Lets all threads of the process see one another's sentences from now on (err_msg_mode of
// aclInit).
void share_sentences();

// ---- the text of aclGetRecentErrMsg (message_text.cpp) ----

// Whether the caller can correct what led to this code.
bool is_callers_mistake(int32_t code);
// Prints the line of a failure, at most kDecoration characters longer than its sentence.
inline constexpr size_t kDecoration = 120;
size_t print_message(int32_t code, const timespec& time, const char* sentence, char* text,
                     size_t size);

}  // namespace openaclnn

// Copies the newest sentence for tracing, cut to the size; forgets nothing.
extern "C" void openaclnn_newest_sentence(char* text, size_t size);
