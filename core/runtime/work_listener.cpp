// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/work_listener.h"

#include <utility>

#include "core/runtime/device.h"
#include "core/runtime/stream.h"
#include "core/support/observer.h"

namespace openaclnn {

std::atomic<int> listening = 0;

namespace {

std::atomic<WorkListener> listeners[kListeners];
thread_local uint32_t external_kind = 0;
thread_local uint64_t external_id = 0;
thread_local std::shared_ptr<const RecordedAs> recorded_as;  // for what is recorded
thread_local uint64_t running_recorded = 0;                  // of the task that runs

void report_work(const void* stream, const char* name, int64_t begin) {
  const int64_t end = steady_nanoseconds();
  Submission submission = Stream::submission_here();
  if (submission.begin == 0)  // the calling thread submitted it
    submission = {begin, end, number_of_this_thread(), external_kind, external_id};
  const DoneWork work{stream, name, begin, end, submission, running_recorded};
  for (const auto& listener : listeners) {
    if (const WorkListener own = listener.load(std::memory_order_acquire); own != nullptr)
      own(work);
  }
}

}  // namespace

void Work::report() const {
  if (const Stream* stream = Stream::running_here(); stream != nullptr)
    report_work(stream, name_, begin_);
}

Submission submission_begins() {
  if (!work_is_reported()) return {};
  return {steady_nanoseconds(), 0, number_of_this_thread(), external_kind, external_id};
}

std::shared_ptr<const RecordedAs> recorded_as_here() { return recorded_as; }

RunsRecorded::RunsRecorded(uint64_t number) : before_(std::exchange(running_recorded, number)) {}
RunsRecorded::~RunsRecorded() { running_recorded = before_; }

}  // namespace openaclnn

using namespace openaclnn;

void openaclnn_listen_to_work(ListenerSlot slot, WorkListener listener) {
  const WorkListener before = listeners[static_cast<int>(slot)].exchange(listener);
  listening += (listener != nullptr) - (before != nullptr);
  watched = true;  // stays: a load and a branch
}

bool openaclnn_number_of_stream(const void* identity, int32_t* device, int32_t* number) {
  const PinnedStream own(streams(), identity);
  if (!own) return false;
  *number = own->id;
  const PinnedContext context(contexts(), own->owner());
  *device = context ? context->device : 0;
  return true;
}

void openaclnn_set_external_id(uint32_t kind, uint64_t id) {
  external_kind = kind;
  external_id = id;
}

void openaclnn_record_as(uint64_t number, void (*ended)(uint64_t)) {
  recorded_as = number == 0 ? nullptr : std::make_shared<RecordedAs>(number, ended);
}

uint32_t openaclnn_number_of_thread() { return number_of_this_thread(); }

int64_t openaclnn_host_work_begins() { return work_is_reported() ? steady_nanoseconds() : -1; }

void openaclnn_host_work_ends(const void* stream, const char* name, int64_t begin) {
  report_work(openaclnn_identity_of_stream(stream), name, begin);
}

const void* openaclnn_identity_of_stream(const void* handle) {
  if (handle != nullptr) return handle;
  const PinnedContext context = current_context();
  return context ? context->stream : nullptr;
}
