// SPDX-License-Identifier: Apache-2.0
#include "core/support/pending_failures.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "core/support/fork.h"
#include "core/support/no_destructor.h"

namespace openaclnn {

constinit thread_local FailuresOfThread failing{};

namespace {

FailureMessages common;            // for all threads, or for those that got no memory
std::atomic<bool> shared = false;  // `common` is used in place of every thread's own
std::mutex sharing;

// Freed when the thread ends. An exit handler that fails later allocates them again.
FailureMessages* make_own() {
  static constinit NoDestructor<pthread_key_t> key;
  key.get([] {
    pthread_key_t made = 0;
    pthread_key_create(&made, [](void* messages) {
      failing.messages = nullptr;
      std::free(messages);
    });
    return made;
  });
  failing.messages = static_cast<FailureMessages*>(std::calloc(1, sizeof(FailureMessages)));
  if (failing.messages != nullptr) pthread_setspecific(key.get(), failing.messages);
  return failing.messages;
}

FailureMessages* own_messages() {
  return failing.messages != nullptr ? failing.messages : make_own();
}

}  // namespace

PendingFailure& PendingFailures::add(int32_t code, Cause cause, bool mild) {
  if (count > 0 && newest(0).mild) --count;
  PendingFailure& failure = ring[count++ % kPending];
  failure.code = code;
  failure.cause = cause;
  failure.mild = mild;
  failure.thread = &failing;
  clock_gettime(CLOCK_REALTIME, &failure.time);
  return failure;
}

PendingFailure* PendingFailures::newest_of_this_thread() {
  for (unsigned age = 0; age < pending(); ++age) {
    if (newest(age).thread == &failing) return &newest(age);
  }
  return nullptr;
}

SeenFailures::SeenFailures() : lock_(sharing, std::defer_lock), failures_(failing.aside) {
  if (failures_ != nullptr) return;
  if (FailureMessages* own = shared ? nullptr : own_messages(); own != nullptr) {
    failures_ = &own->failures;
    return;
  }
  failures_ = &common.failures;
  lock_.lock();
}

bool SeenFailures::any() {
  return failing.messages != nullptr || failing.aside != nullptr || shared;
}

char* SeenFailures::recent() const {
  FailureMessages* const own = own_messages();
  return own != nullptr ? own->recent : common.recent;
}

struct FailuresSetAside::State {
  PendingFailures within;
  FailuresOfThread before;
};

FailuresSetAside::FailuresSetAside() : before_(new State{{}, failing}) {
  failing.aside = &before_->within;
}

// The thread's own messages may have been allocated in between.
FailuresSetAside::~FailuresSetAside() {
  failing.aside = before_->before.aside;
  failing.last_of_runtime = before_->before.last_of_runtime;
  failing.unreported = before_->before.unreported;
}

void share_sentences() {
  // Not held across fork: failures are recorded under locks that are. The child starts with none.
  after_fork_in_child([] {
    new (&sharing) std::mutex;
    common.failures.count = 0;
  });
  shared = true;
}

}  // namespace openaclnn
