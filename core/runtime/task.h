// SPDX-License-Identifier: Apache-2.0
// A task of a stream from an object with run(): it runs here if the stream is idle and the work is
// brief, else on the stream's thread.
#pragma once

#include <memory>

#include "core/runtime/api_guard.h"
#include "core/runtime/stream.h"

namespace openaclnn {

// May throw std::bad_alloc.
template <class Job>
void submit_job(Stream& stream, std::unique_ptr<Job> job, bool brief) {
  const auto run = [](void* self) { static_cast<Job*>(self)->run(); };
  if (brief && stream.run_if_idle(run, job.get())) return;
  stream.submit({run, [](void* self) { delete static_cast<Job*>(self); }, job.get()});
  (void)job.release();
}

// For a job that waits, or that must not run on the calling thread.
template <class Job>
Status hand_over_job(const char* call, Stream& stream, std::unique_ptr<Job> job) {
  const auto run = [](void* self) { static_cast<Job*>(self)->run(); };
  const auto drop = [](void* self) { delete static_cast<Job*>(self); };
  if (!stream.hand_over({run, drop, job.get()})) return no_thread(call);
  (void)job.release();
  return {};
}

}  // namespace openaclnn
