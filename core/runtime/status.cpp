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

constexpr char kSeparator[] = ": ";

struct Record {
  int32_t code;
  Cause cause;
  bool mild;           // the next one takes its place
  const void* thread;  // &own of the one that failed
  timespec time;
  size_t head;      // bytes of `text` before the sentence: the call and a separator, or 0
  char text[1000];  // all of it, as programs get it

  std::string_view call() const { return {text, head == 0 ? 0 : head - std::strlen(kSeparator)}; }
  const char* sentence() const { return text + head; }
  size_t write_head(const char* call) {
    head = 0;
    if (call == nullptr || *call == '\0') return 0;
    return head = static_cast<size_t>(snprintf(text, sizeof text, "%.200s%s", call, kSeparator));
  }
};

// If nobody asks for them, the newest kPending failures are kept.
struct Records {
  static constexpr unsigned kPending = 4;

  Record ring[kPending];
  unsigned count;  // ever recorded since they were last taken

  unsigned pending() const { return count < kPending ? count : kPending; }
  Record& newest(unsigned age) { return ring[(count - 1 - age) % kPending]; }
  Record& add(int32_t code, Cause cause, bool mild = false);
  Record* newest_of_this_thread();  // nullptr when there is none
};

struct Messages {
  Records records;
  char recent[Records::kPending * (sizeof(Record::text) + kDecoration)];
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
thread_local bool set_aside = false;   // within FailuresSetAside

void note_code(int32_t code) {
  if (code % 100000 / 1000 == 7) last_of_runtime = code;
}

Record& Records::add(int32_t code, Cause cause, bool mild) {
  if (count > 0 && newest(0).mild) --count;
  Record& failure = ring[count++ % kPending];
  failure.code = code;
  failure.cause = cause;
  failure.mild = mild;
  failure.thread = &own;
  clock_gettime(CLOCK_REALTIME, &failure.time);
  return failure;
}

Record* Records::newest_of_this_thread() {
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
  Records* operator->() const { return &messages_->records; }
  // The text that this thread gets, which is its own also where records are not.
  char* recent() const {
    return own != nullptr || make_own() != nullptr ? own->recent : common.recent;
  }

 private:
  std::unique_lock<std::mutex> lock_;
  Messages* messages_;
};

void record(int32_t code, Cause cause, bool mild, const char* call, const char* sentence,
            va_list arguments) {
  note_code(code);
  unreported = true;
  const Seen seen;
  Record& failure = seen->add(code, cause, mild);
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
  const Seen seen;
  Record* failure = seen->newest_of_this_thread();
  if (failure == nullptr) {
    failure = &seen->add(status.code_, Reason::internal);
    failure->text[failure->head = 0] = '\0';
  }
  char sentence[sizeof(Record::text)];
  std::strcpy(sentence, failure->sentence());
  const size_t head = failure->write_head(call);
  snprintf(failure->text + head, sizeof failure->text - head, "%s", sentence);
  failure->code = status.code_;
  return status;
}

namespace {

constexpr int32_t kOfTheFailure = -1;  // the code that it was recorded with

void notify_observer(int32_t code, const Caller* caller) {
  if (observer == nullptr || !std::exchange(unreported, false) || set_aside) return;
  Record own_copy{};
  {
    const Seen seen;
    const Record* failure = seen->newest_of_this_thread();
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
  unreported = false;  // an exception reports it
  const Seen seen;
  const Record* failure = seen->newest_of_this_thread();
  std::string sentence = failure != nullptr ? failure->text : "";
  seen->count = 0;
  return sentence;
}

TakenFailure take_failure(int32_t code) {
  unreported = false;  // reported when it is recorded again, by fail()
  const Seen seen;
  const Record* newest = seen->newest_of_this_thread();
  TakenFailure failure{code, {}, "", ""};
  if (newest != nullptr)
    failure = {code, newest->cause, std::string(newest->call()), newest->sentence()};
  seen->count = 0;
  return failure;
}

struct FailuresSetAside::State {
  Records records;
  int32_t last_of_runtime;
  bool unreported, set_aside;
};

FailuresSetAside::FailuresSetAside() : before_(new State) {
  const Seen seen;
  *before_ = {*seen.operator->(), last_of_runtime, unreported, set_aside};
  seen->count = 0;
  set_aside = true;
}

FailuresSetAside::~FailuresSetAside() {
  const Seen seen;
  *seen.operator->() = before_->records;
  last_of_runtime = before_->last_of_runtime;
  unreported = before_->unreported;
  set_aside = before_->set_aside;
}

void withdraw(int32_t code) {
  if (last_of_runtime == code) last_of_runtime = 0;
  const Seen seen;
  Record kept[Records::kPending];
  unsigned count = 0;
  for (unsigned age = seen->pending(); age-- > 0;) {
    const Record& failure = seen->newest(age);
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
    common.records.count = 0;
  });
  shared = true;
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
  return forget ? std::exchange(last_of_runtime, 0) : last_of_runtime;
}

}  // namespace

void openaclnn_newest_sentence(char* text, size_t size) {
  const Seen seen;
  const Record* failure = seen->newest_of_this_thread();
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
    const Record& failure = seen->newest(age);
    end += print_message(failure.code, failure.time, failure.text, end,
                         static_cast<size_t>(recent + sizeof(Messages::recent) - end));
  }
  seen->count = 0;
  return recent;
}
