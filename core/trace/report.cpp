// SPDX-License-Identifier: Apache-2.0
// The Recorder's part in the report of a run (tally.h).
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/trace/recorder.h"

namespace openaclnn::trace {

Tallied* Recorder::tally(Tallied::Kind kind, const std::string& name, const Signature& signature,
                         const CallOn& call_on) {
  Tallied* own;
  {
    std::lock_guard lock(mutex_);
    own = tally_.find(kind, name, signature);
    if (own->judged) return own;
  }
  // A call that no product accepts, such as one with wrong shapes, says nothing about products.
  if (call_on("any").code != 0) return own;
  std::vector<Verdict> verdicts;
  for (const std::string& product : tally_.products()) {
    if (Verdict verdict = call_on(product); verdict.code != 0)
      verdicts.push_back(std::move(verdict));
  }
  std::lock_guard lock(mutex_);
  own->judged = true;
  own->verdicts = std::move(verdicts);
  return own;
}

void Recorder::planned(Tallied* own, const std::string& refusal, int64_t begin, int64_t end) {
  std::lock_guard lock(mutex_);
  ++own->calls;
  own->planned += end - begin;
  if (refusal.empty()) return;
  ++own->refused;
  own->sentence = refusal;
}

void Recorder::fell_back(const std::string& name, const Signature& signature, int64_t begin,
                         int64_t end) {
  std::lock_guard lock(mutex_);
  open();
  line("host", thread_number(), begin, end, name + " on the CPU");
  event(Track::host, thread_number(), name + " on the CPU", begin, end, {});
  if (!tally_.wanted()) return;
  Tallied* own = tally_.find(Tallied::Kind::fallback, name, signature);
  ++own->calls;
  own->worked += end - begin;
}

Tallied* Recorder::tallied_by(const aclOpExecutor* plan) {
  std::lock_guard lock(mutex_);
  const auto found = plans_.find(plan);
  return found == plans_.end() ? nullptr : found->second.tallied;
}

void Recorder::refuse(Tallied* own, const std::string& sentence) {
  std::lock_guard lock(mutex_);
  ++own->refused;
  own->sentence = sentence;
}

void Recorder::write_report(bool complete) {
  std::vector<Tally::Call> calls;
  for (const auto& [key, own] : figures_) {
    if (key.first == 0) calls.push_back({key.second, own.count, own.total});
  }
  tally_.write(calls, program_invocation_short_name, complete);
}

// A child of vfork has this memory, but another process. A signal handler may have interrupted the
// holder of the lock: then what was written in the last second stays.
void Recorder::leave() {
  if (!tally_.wanted() || getpid() != process_) return;
  std::unique_lock lock(mutex_, std::try_to_lock);
  for (int tries = 0; !lock && tries < 100; ++tries) {
    usleep(1000);
    (void)lock.try_lock();
  }
  if (lock) write_report(true);
}

}  // namespace openaclnn::trace
