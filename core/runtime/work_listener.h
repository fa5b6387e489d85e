// SPDX-License-Identifier: Apache-2.0
// The work of streams, as `openaclnn trace` and profilers listen to it. Without a listener, each
// piece of work costs one load before and one after it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace openaclnn {

// Times are nanoseconds of the steady clock.
struct Submission {
  int64_t begin = 0, end = 0;  // of the call; 0: the call did the work itself
  uint32_t thread = 0;
  uint32_t external_kind = 0;  // of the thread (openaclnn_set_external_id); 0: none
  uint64_t external_id = 0;
};
struct DoneWork {
  const void* stream;
  const char* name;
  int64_t begin, end;
  Submission submission;
  uint64_t recorded_as;  // of a task of a graph (openaclnn_record_as); 0: of none
};

// The thread that did the work calls it afterwards.
using WorkListener = void (*)(const DoneWork& work);
enum class ListenerSlot { trace, profile, activities };
constexpr int kListeners = 3;

[[gnu::visibility("hidden")]] extern std::atomic<int> listening;  // how many listen

inline bool work_is_reported() { return listening.load(std::memory_order_relaxed) > 0; }

// What openaclnn_record_as set for the calling thread; shared by the tasks that graphs record.
class RecordedAs {
 public:
  RecordedAs(uint64_t its, void (*ended)(uint64_t)) : number(its), ended_(ended) {}
  ~RecordedAs() { ended_(number); }
  RecordedAs(const RecordedAs&) = delete;

  const uint64_t number;

 private:
  void (*const ended_)(uint64_t);
};
[[gnu::visibility("hidden")]] std::shared_ptr<const RecordedAs> recorded_as_here();

// RAII: the work of the calling thread is that of a recorded task.
class [[gnu::visibility("hidden")]] RunsRecorded {
 public:
  explicit RunsRecorded(uint64_t recorded_as);
  ~RunsRecorded();
  RunsRecorded(const RunsRecorded&) = delete;

 private:
  const uint64_t before_;
};

// As the calling thread begins to submit; empty if nobody listens.
[[gnu::visibility("hidden")]] Submission submission_begins();

inline int64_t steady_nanoseconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

// RAII: work of the calling thread's stream, from construction to destruction. Not reported outside
// a stream.
class Work {
 public:
  explicit Work(const char* name) : name_(name) {
    if (work_is_reported()) [[unlikely]]
      begin_ = steady_nanoseconds();
  }
  ~Work() {
    if (begin_ >= 0) [[unlikely]]
      report();
  }
  Work(const Work&) = delete;

 private:
  void report() const;

  const char* name_;
  int64_t begin_ = -1;
};

}  // namespace openaclnn

extern "C" {
// Work that the host does for a stream. The first returns -1 without a listener.
int64_t openaclnn_host_work_begins();
void openaclnn_host_work_ends(const void* stream, const char* name, int64_t begin);
// nullptr ends it; a call may still be running then.
void openaclnn_listen_to_work(openaclnn::ListenerSlot slot, openaclnn::WorkListener listener);
// Device and number of a live stream; false: no such stream. For the pointer of a listener.
bool openaclnn_number_of_stream(const void* identity, int32_t* device, int32_t* number);
// What the calling thread submits from now on has these in DoneWork.
void openaclnn_set_external_id(uint32_t kind, uint64_t id);
// What graphs record of the calling thread from now on has this number in the DoneWork of replays;
// 0: none. ended(number) follows when the thread has another number and the last such task is gone.
void openaclnn_record_as(uint64_t number, void (*ended)(uint64_t number));
uint32_t openaclnn_number_of_thread();  // of the calling one, as in Submission
// The pointer that the listener gets for a handle (NULL: the default stream); NULL: no such stream.
const void* openaclnn_identity_of_stream(const void* handle);
}

namespace openaclnn {

// RAII, as Work, for work that the calling thread does for the stream with this handle.
class HostWork {
 public:
  HostWork(const void* stream, const char* name) : stream_(stream), name_(name) {}
  ~HostWork() {
    if (begin_ >= 0) [[unlikely]]
      openaclnn_host_work_ends(stream_, name_, begin_);
  }
  HostWork(const HostWork&) = delete;

 private:
  const void* stream_;
  const char* name_;
  int64_t begin_ = openaclnn_host_work_begins();
};

}  // namespace openaclnn
