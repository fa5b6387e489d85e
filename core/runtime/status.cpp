// SPDX-License-Identifier: Apache-2.0
// The pending failures of each thread, or of all threads.
#include "core/runtime/status.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <utility>

#include "acl/acl_rt.h"
#include "core/runtime/arithmetic.h"
#include "core/runtime/fork.h"
#include "core/runtime/no_destructor.h"
#include "core/runtime/observer.h"

namespace openaclnn {
namespace {

struct Failure {
  int32_t code;
  bool mild;           // replaced by the next failure
  const void* thread;  // &own of the one that failed
  timespec time;
  char sentence[1000];
};

// The newest kPending failures that were not asked for.
struct Failures {
  static constexpr unsigned kPending = 4;

  Failure ring[kPending];
  unsigned count;  // ever recorded since they were last taken

  unsigned pending() const { return count < kPending ? count : kPending; }
  Failure& newest(unsigned age) { return ring[(count - 1 - age) % kPending]; }
  Failure& add(int32_t code, bool mild = false);
  Failure* newest_of_this_thread();  // nullptr when there is none
};

struct Messages {
  Failures failures;
  char recent[Failures::kPending * (sizeof(Failure::sentence) + kDecoration)];
};

// Allocated at the first failure of a thread: as thread-local storage, 9 KiB would come off the
// stack of every thread, which may be only 16 KiB.
thread_local Messages* own = nullptr;

Messages common;                   // for all threads, or for those that got no memory
std::atomic<bool> shared = false;  // `common` is used in place of every `own`
std::mutex sharing;

// The newest 107xxx, 207xxx or 507xxx that the runtime returned to the outer call.
thread_local int32_t last_of_runtime = 0;

thread_local bool unreported = false;  // the observer was not yet notified of the newest failure

void note_code(int32_t code) {
  if (code % 100000 / 1000 == 7) last_of_runtime = code;
}

Failure& Failures::add(int32_t code, bool mild) {
  if (count > 0 && newest(0).mild) --count;
  Failure& failure = ring[count++ % kPending];
  failure.code = code;
  failure.mild = mild;
  failure.thread = &own;
  clock_gettime(CLOCK_REALTIME, &failure.time);
  return failure;
}

Failure* Failures::newest_of_this_thread() {
  for (unsigned age = 0; age < pending(); ++age) {
    if (newest(age).thread == &own) return &newest(age);
  }
  return nullptr;
}

// Freed when the thread ends. An exit handler that fails later allocates them again.
Messages* make_own() {
  static constinit NoDestructor<pthread_key_t> key;
  key.get([] {
    pthread_key_t made = 0;
    pthread_key_create(&made, [](void* messages) {
      own = nullptr;
      std::free(messages);
    });
    return made;
  });
  own = static_cast<Messages*>(std::calloc(1, sizeof(Messages)));
  if (own != nullptr) pthread_setspecific(key.get(), own);
  return own;
}

// Access to the messages that this thread sees; locked if they are shared.
class Seen {
 public:
  Seen() : lock_(sharing, std::defer_lock), messages_(shared ? nullptr : own) {
    if (messages_ == nullptr && !shared) messages_ = make_own();
    if (messages_ != nullptr) return;
    messages_ = &common;
    lock_.lock();
  }
  Failures* operator->() const { return &messages_->failures; }
  // The buffer of aclGetRecentErrMsg: of the thread, even if failures are shared.
  char* recent() const {
    return own != nullptr || make_own() != nullptr ? own->recent : common.recent;
  }

 private:
  std::unique_lock<std::mutex> lock_;
  Messages* messages_;
};

void record(int32_t code, bool mild, const char* sentence, va_list arguments) {
  note_code(code);
  unreported = true;
  const Seen seen;
  Failure& failure = seen->add(code, mild);
  const DefaultEnvironment environment;  // numbers read the same in every rounding mode
  vsnprintf(failure.sentence, sizeof failure.sentence, sentence, arguments);
}

}  // namespace

Status fail(int32_t code, const char* sentence, ...) {
  va_list arguments;
  va_start(arguments, sentence);
  record(code, false, sentence, arguments);
  va_end(arguments);
  return Status(code);
}

Status fail_mildly(int32_t code, const char* sentence, ...) {
  va_list arguments;
  va_start(arguments, sentence);
  record(code, true, sentence, arguments);
  va_end(arguments);
  return Status(code);
}

Status prefix_newest(int32_t code, const char* prefix, ...) {
  char sentence[sizeof(Failure::sentence)];
  va_list arguments;
  va_start(arguments, prefix);
  vsnprintf(sentence, sizeof sentence, prefix, arguments);
  va_end(arguments);
  note_code(code);
  const Seen seen;
  Failure* failure = seen->newest_of_this_thread();
  if (failure != nullptr) {
    const size_t length = std::strlen(sentence);
    snprintf(sentence + length, sizeof sentence - length, "%s", failure->sentence);
  } else {
    failure = &seen->add(code);
  }
  failure->code = code;
  std::memcpy(failure->sentence, sentence, sizeof sentence);
  return Status(code);
}

namespace {

constexpr int32_t kOfTheFailure = -1;  // the code that it was recorded with

void notify_observer(int32_t code, const Caller* caller) {
  if (observer == nullptr || !std::exchange(unreported, false)) return;
  char sentence[sizeof(Failure::sentence)] = "";
  {
    const Seen seen;
    const Failure* failure = seen->newest_of_this_thread();
    if (failure != nullptr) std::memcpy(sentence, failure->sentence, sizeof sentence);
    if (code == kOfTheFailure) code = failure != nullptr ? failure->code : 0;
  }
  observer->failed(code, sentence, caller);
}

}  // namespace

void notify_status(int32_t code) { notify_observer(code, nullptr); }

void notify_status_at(Caller (*where)()) {
  if (observer == nullptr) return;
  const Caller caller = where();
  notify_observer(kOfTheFailure, &caller);
}

std::string take_sentence() {
  unreported = false;  // an exception reports it
  const Seen seen;
  const Failure* failure = seen->newest_of_this_thread();
  std::string sentence = failure != nullptr ? failure->sentence : "";
  seen->count = 0;
  return sentence;
}

void withdraw(int32_t code) {
  if (last_of_runtime == code) last_of_runtime = 0;
  const Seen seen;
  Failure kept[Failures::kPending];
  unsigned count = 0;
  for (unsigned age = seen->pending(); age-- > 0;) {
    const Failure& failure = seen->newest(age);
    if (failure.thread != &own || failure.code != code) kept[count++] = failure;
  }
  if (count == seen->pending()) return;
  std::copy_n(kept, count, seen->ring);
  seen->count = count;
}

void share_sentences() {
  // Not held across fork: failures are recorded under locks that are. The child starts with none.
  after_fork_in_child([] {
    new (&sharing) std::mutex;
    common.failures.count = 0;
  });
  shared = true;
}

namespace {

std::atomic<bool> deferred = false;

}  // namespace

bool refusals_deferred() { return deferred.load(std::memory_order_relaxed); }

}  // namespace openaclnn

using namespace openaclnn;

void openaclnn_defer_refusals() { deferred.store(true, std::memory_order_relaxed); }

namespace {

aclError last_error(const char* call, int level, bool forget) {
  if (level != ACL_RT_THREAD_LEVEL) {
    return fail(ACL_ERROR_INVALID_PARAM, "%s: level must be 0, the thread, but got %d", call, level)
        .code();
  }
  return forget ? std::exchange(last_of_runtime, 0) : last_of_runtime;
}

}  // namespace

void openaclnn_newest_sentence(char* text, size_t size) {
  const Seen seen;
  const Failure* failure = seen->newest_of_this_thread();
  snprintf(text, size, "%s", failure != nullptr ? failure->sentence : "");
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
  if (own == nullptr && !shared) return "";
  const Seen seen;
  char* const recent = seen.recent();
  char* end = recent;
  *end = '\0';
  unsigned first = 0;
  for (unsigned age = seen->pending(); age-- > 0;) {
    if (is_callers_mistake(seen->newest(age).code)) first = age;
  }
  for (unsigned i = 0; i < seen->pending(); ++i) {
    const unsigned age = i == 0 ? first : i <= first ? i - 1 : i;
    const Failure& failure = seen->newest(age);
    end += print_message(failure.code, failure.time, failure.sentence, end,
                         static_cast<size_t>(recent + sizeof(Messages::recent) - end));
  }
  seen->count = 0;
  return recent;
}
