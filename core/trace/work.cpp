// SPDX-License-Identifier: Apache-2.0
// What calls submit, and the work of streams that it becomes.
#include <algorithm>
#include <string>
#include <utility>

#include "core/trace/recorder.h"

namespace openaclnn::trace {

Recorder::Submission Recorder::submission_of(const char* name, const aclOpExecutor* executor,
                                             const Arguments& arguments) {
  const auto plan = plans_.find(executor);
  const bool known = plan != plans_.end();
  return {++submissions_, name, known ? plan->second.arguments : arguments,
          known ? plan->second.tallied : nullptr};
}

uint64_t Recorder::submit(const char* name, const void* identity, const aclOpExecutor* executor,
                          const Arguments& arguments) {
  std::lock_guard lock(mutex_);
  submitted_[identity].push_back(submission_of(name, executor, arguments));
  return submissions_;
}

uint64_t Recorder::record(const char* name, const aclOpExecutor* executor,
                          const Arguments& arguments) {
  std::lock_guard lock(mutex_);
  Submission recorded = submission_of(name, executor, arguments);
  recorded_.emplace(submissions_, std::move(recorded));
  return submissions_;
}

void Recorder::forget(uint64_t recorded) {
  std::lock_guard lock(mutex_);
  recorded_.erase(recorded);
}

void Recorder::withdraw(uint64_t submission) {
  std::lock_guard lock(mutex_);
  for (auto& [identity, waiting] : submitted_) {
    const auto found = std::find_if(waiting.begin(), waiting.end(),
                                    [=](const Submission& s) { return s.number == submission; });
    if (found == waiting.end()) continue;
    waiting.erase(found);
    return;
  }
}

// An arrow from the call that replays a graph to the first work of the replay.
void Recorder::follow_replay(const DoneWork& work, int number) {
  const auto [call, thread] = std::make_pair(work.submission.begin, work.submission.thread);
  const auto caller = thread_numbers_.find(thread);
  if (caller == thread_numbers_.end() || std::exchange(replays_[work.stream], call) == call) return;
  const uint64_t id = ++submissions_;
  arrow("submits", "\"s\"", Track::host, caller->second, call, id);
  arrow("submits", "\"f\", \"bp\": \"e\"", Track::stream, number, work.begin, id);
}

// Streams run in order, so this is the oldest submission under this name.
std::optional<Recorder::Submission> Recorder::take_submission(const DoneWork& work) {
  std::deque<Submission>& waiting = submitted_[work.stream];
  const auto found = std::find_if(waiting.begin(), waiting.end(),
                                  [&](const Submission& s) { return s.name == work.name; });
  if (found == waiting.end()) return {};
  Submission own = std::move(*found);
  waiting.erase(found);
  return own;
}

void Recorder::worked(const DoneWork& work) {
  const auto [begin, end] = std::make_pair(work.begin, work.end);
  std::lock_guard lock(mutex_);
  open();
  const int number = number_of(work.stream);
  const bool replayed = work.recorded_as != 0;
  std::optional<Submission> own;
  if (const auto found = recorded_.find(work.recorded_as); found != recorded_.end())
    own = found->second;
  if (!replayed) own = take_submission(work);
  const Arguments arguments = own ? own->arguments : Arguments();
  if (text_ != nullptr) {
    line("stream", number, begin, end,
         arguments.empty() ? work.name : std::string(work.name) + "(" + listed(arguments) + ")");
  }
  if (json_ != nullptr) event(Track::stream, number, work.name, begin, end, arguments);
  if (own && own->tallied != nullptr) own->tallied->worked += end - begin;
  figures_[{number, work.name}].add(end - begin);
  if (replayed) return follow_replay(work, number);
  if (own) arrow("submits", "\"f\", \"bp\": \"e\"", Track::stream, number, begin, own->number);
}

}  // namespace openaclnn::trace
