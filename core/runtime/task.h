// SPDX-License-Identifier: Apache-2.0
// A task of a stream from an object with run(): it runs here if the stream is idle and the work is
// brief, else on the stream's thread.
#pragma once

#include <memory>

#include "core/support/api_guard.h"
#include "core/support/observer.h"
#include "core/runtime/stream.h"

namespace openaclnn {

// For a job with kCall, the function that submits it; kType, if it has a type of task; and
// observe(stream), if the observer wants to know of each run.
template <class Job>
Task task_of(Job* job) {
  Task task = {[](void* self) { static_cast<Job*>(self)->run(); },
               [](void* self) { delete static_cast<Job*>(self); }, job};
  task.call = Job::kCall;
  if constexpr (requires { Job::kType; }) task.type = Job::kType;
  if constexpr (requires(const Job& its, const Stream& on) { its.observe(on); }) {
    task.observe = [](void* self, const Stream& on) { static_cast<const Job*>(self)->observe(on); };
  }
  return task;
}

// Reports a job to the observer, unless the stream records it: then each replay does.
template <class Job>
void observe_job(const Stream& stream, const Job& job) {
  if (observer != nullptr && !stream.records()) [[unlikely]]
    job.observe(stream);
}

// May throw std::bad_alloc.
template <class Job>
void submit_job(Stream& stream, std::unique_ptr<Job> job, bool brief) {
  const Task task = task_of(job.get());
  if (brief && stream.run_if_idle(task.run, job.get())) return;
  stream.submit(task);
  (void)job.release();
}

// For a job that waits, or that must not run on the calling thread.
template <class Job>
Status hand_over_job(const char* call, Stream& stream, std::unique_ptr<Job> job) {
  if (!stream.hand_over(task_of(job.get()))) return no_thread(call);
  (void)job.release();
  return {};
}

}  // namespace openaclnn
