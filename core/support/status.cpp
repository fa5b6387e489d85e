// SPDX-License-Identifier: Apache-2.0
// Failures are recorded, taken and shown.
#include "core/support/status.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <utility>

#include "acl/acl_rt.h"
#include "core/support/arithmetic.h"
#include "core/support/observer.h"
#include "core/support/pending_failures.h"

namespace openaclnn {
namespace {

void note_code(int32_t code) {
  if (code % 100000 / 1000 == 7) failing.last_of_runtime = code;
}

void record(int32_t code, Cause cause, bool mild, const char* call, const char* sentence,
            va_list arguments) {
  note_code(code);
  failing.unreported = true;
  const SeenFailures seen;
  PendingFailure& failure = seen->add(code, cause, mild);
  const size_t head = failure.write_head(call);
  const DefaultEnvironment environment;  // numbers read the same in every rounding mode
  vsnprintf(failure.text + head, sizeof failure.text - head, sentence, arguments);
}

}  // namespace

Status fail(int32_t code, Cause cause, const char* call, const char* sentence, ...) {
  va_list arguments;
  va_start(arguments, sentence);
  record(code, cause, false, call, sentence, arguments);
  va_end(arguments);
  return Status(code);
}

Status fail_mildly(int32_t code, Cause cause, const char* call, const char* sentence, ...) {
  va_list arguments;
  va_start(arguments, sentence);
  record(code, cause, true, call, sentence, arguments);
  va_end(arguments);
  return Status(code);
}

Status fail(const TakenFailure& failure) {
  return fail(failure.code, failure.cause, failure.call.c_str(), "%s", failure.sentence.c_str());
}

Status with_call(Status status, const char* call) {
  note_code(status.code_);
  const SeenFailures seen;
  PendingFailure* failure = seen->newest_of_this_thread();
  if (failure == nullptr) {
    failure = &seen->add(status.code_, Reason::internal);
    failure->text[failure->head = 0] = '\0';
  }
  char sentence[sizeof(PendingFailure::text)];
  std::strcpy(sentence, failure->sentence());
  const size_t head = failure->write_head(call);
  snprintf(failure->text + head, sizeof failure->text - head, "%s", sentence);
  failure->code = status.code_;
  return status;
}

namespace {

constexpr int32_t kOfTheFailure = -1;  // the code that it was recorded with

void notify_observer(int32_t code, const Caller* caller) {
  if (observer == nullptr || !std::exchange(failing.unreported, false) || failing.aside != nullptr)
    return;
  PendingFailure own_copy{};
  {
    const SeenFailures seen;
    const PendingFailure* failure = seen->newest_of_this_thread();
    if (failure != nullptr) own_copy = *failure;
  }
  if (code == kOfTheFailure) code = own_copy.code;
  observer->failed({code, own_copy.cause, own_copy.call(), own_copy.sentence()}, caller);
}

}  // namespace

void notify_status(int32_t code) { notify_observer(code, nullptr); }

void notify_status_at(Caller (*where)()) {
  if (observer == nullptr) return;
  const Caller caller = where();
  notify_observer(kOfTheFailure, &caller);
}

std::string take_sentence() {
  failing.unreported = false;  // an exception reports it
  const SeenFailures seen;
  const PendingFailure* failure = seen->newest_of_this_thread();
  std::string sentence = failure != nullptr ? failure->text : "";
  seen->count = 0;
  return sentence;
}

TakenFailure take_failure(int32_t code) {
  failing.unreported = false;  // reported when it is recorded again, by fail()
  const SeenFailures seen;
  const PendingFailure* newest = seen->newest_of_this_thread();
  TakenFailure failure{code, {}, "", ""};
  if (newest != nullptr)
    failure = {code, newest->cause, std::string(newest->call()), newest->sentence()};
  seen->count = 0;
  return failure;
}

void withdraw(int32_t code) {
  if (failing.last_of_runtime == code) failing.last_of_runtime = 0;
  const SeenFailures seen;
  PendingFailure kept[PendingFailures::kPending];
  unsigned count = 0;
  for (unsigned age = seen->pending(); age-- > 0;) {
    const PendingFailure& failure = seen->newest(age);
    if (failure.thread != &failing || failure.code != code) kept[count++] = failure;
  }
  if (count == seen->pending()) return;
  std::copy_n(kept, count, seen->ring);
  seen->count = count;
}

}  // namespace openaclnn

using namespace openaclnn;

namespace {

aclError last_error(const char* call, int level, bool forget) {
  if (level != ACL_RT_THREAD_LEVEL) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "level must be 0, the thread, but got %d", level)
        .code();
  }
  return forget ? std::exchange(failing.last_of_runtime, 0) : failing.last_of_runtime;
}

}  // namespace

void openaclnn_newest_sentence(char* text, size_t size) {
  const SeenFailures seen;
  const PendingFailure* failure = seen->newest_of_this_thread();
  snprintf(text, size, "%s", failure != nullptr ? failure->text : "");
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  return last_error("aclrtGetLastError", static_cast<int>(level), true);
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  return last_error("aclrtPeekAtLastError", static_cast<int>(level), false);
}

// Newest first, except that a mistake of the caller comes before the internal errors that it
// caused.
const char* aclGetRecentErrMsg() {
  if (!SeenFailures::any()) return "";
  const SeenFailures seen;
  char* const recent = seen.recent();
  char* end = recent;
  *end = '\0';
  unsigned first = 0;
  for (unsigned age = seen->pending(); age-- > 0;) {
    if (is_callers_mistake(seen->newest(age).code)) first = age;
  }
  for (unsigned i = 0; i < seen->pending(); ++i) {
    const unsigned age = i == 0 ? first : i <= first ? i - 1 : i;
    const PendingFailure& failure = seen->newest(age);
    end += print_message(failure.code, failure.time, failure.text, end,
                         static_cast<size_t>(recent + sizeof(FailureMessages::recent) - end));
  }
  seen->count = 0;
  return recent;
}
