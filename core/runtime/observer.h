// SPDX-License-Identifier: Apache-2.0
// How check mode and `openaclnn trace` watch the runtime. Without an observer, each call that
// creates, uses or destroys an object and each phase of an operator costs one load and a branch not
// taken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/runtime/reason.h"
#include "core/runtime/status.h"

namespace openaclnn {

class Stream;

// Memory that a call accesses, and the argument that points to it.
struct Range {
  const char* argument;
  const void* address;
  size_t bytes;
  bool written;
  bool moved = false;  // its values are only moved
};

// `call` is the C function, or nullptr where it is unknown.
struct Observer {
  // Allocates device memory. The program's address is inaccessible; `reachable` returns the usable
  // one. nullptr: out of memory.
  void* (*obtain)(const char* call, size_t size, size_t reserved);
  void (*give_back)(void* address);
  void* (*reachable)(const void* address);
  // The same for aclrtReserveMemAddress.
  void* (*reserve)(const char* call, size_t size);
  // Records a mapping; false: out of entries.
  bool (*map)(const char* call, const void* address, size_t size);

  void (*made)(const char* call, ObjectKind kind, const void* handle);
  void (*ending)(const char* call, ObjectKind kind, const void* handle);  // before the object ends
  // A call was refused because of this handle or address.
  void (*refused)(const char* call, ObjectKind kind, const char* argument, const void* handle);
  // A call returns this failure. The caller is nullptr where the stack shows it.
  void (*failed)(const ReportedFailure& failure, const Caller* caller);
  // A call that only `failed` would show.
  void (*used)();
  void (*finalised)(const char* call);

  // Before a copy or fill is checked; may refuse it. A fill has src nullptr and kind -1.
  Status (*inspect_transfer)(const char* call, const void* dst, size_t limit, const void* src,
                             size_t count, int kind);
  // Before a copy (dst, src) or fill (dst) runs or is submitted; stream nullptr: on the host.
  void (*touches)(const char* call, const Range* ranges, int count, const Stream* stream);
  // The same for any other work.
  void (*works)(const char* call, const Range* ranges, int count, const Stream* stream);
  // The running work leaves these bytes of its outputs unwritten.
  void (*left)(const void* reachable, size_t bytes);
  // A copy or fill that never ran, because its stream was destroyed by force.
  void (*dropped)(const char* call, const Range& range);

  // Happens-before edges: the host waited for a stream; an event was recorded on a stream; a stream
  // waits for an event; the host found an event reached.
  void (*synchronised)(const Stream* stream);
  void (*recorded)(const void* event, const Stream* stream);
  void (*waits)(const Stream* stream, const void* event);
  void (*reached)(const void* event);
  // A stream waits for a notification, which it consumes; nullptr: for what cannot be known.
  void (*consumes)(const Stream* stream, const void* notify);
};

// A relaxed atomic pointer or flag; what it points to is constant.
template <class T>
class Watch {
 public:
  constexpr Watch(T value) : value_(value) {}
  void operator=(T value) { value_.store(value, std::memory_order_relaxed); }
  operator T() const { return value_.load(std::memory_order_relaxed); }
  T operator->() const { return *this; }

 private:
  std::atomic<T> value_;
};

[[gnu::visibility("hidden")]] extern Watch<const Observer*> observer;
// Whether any observer, plan observer or work listener is installed.
[[gnu::visibility("hidden")]] extern Watch<bool> watched;

// The address at which the library accesses the program's `address`.
inline void* reachable(const void* address) {
  if (observer != nullptr) [[unlikely]] {
    return observer->reachable(address);
  }
  return const_cast<void*>(address);
}

inline void notify_made(const char* call, ObjectKind kind, const void* handle) {
  if (observer != nullptr) [[unlikely]]
    observer->made(call, kind, handle);
}
inline void notify_ending(const char* call, ObjectKind kind, const void* handle) {
  if (observer != nullptr) [[unlikely]]
    observer->ending(call, kind, handle);
}
inline void notify_refused(const char* call, ObjectKind kind, const char* argument,
                           const void* handle) {
  if (observer != nullptr) [[unlikely]]
    observer->refused(call, kind, argument, handle);
}
// Fails with a handle that is not alive, and tells the observer.
inline Status dead_handle(int32_t code, const char* call, ObjectKind kind, const char* argument,
                          const void* handle) {
  notify_refused(call, kind, argument, handle);
  return fail(code, {Reason::dead_handle, kind}, call, "%s %p was %s", argument, handle,
              kind == ObjectKind::physical_memory ? "freed or never allocated"
                                                  : "destroyed or never created");
}
inline void notify_recorded(const void* event, const Stream* stream) {
  if (observer != nullptr) [[unlikely]]
    observer->recorded(event, stream);
}
inline void notify_waits(const Stream* stream, const void* event) {
  if (observer != nullptr) [[unlikely]]
    observer->waits(stream, event);
}
inline void notify_consumes(const Stream* stream, const void* notify) {
  if (observer != nullptr) [[unlikely]]
    observer->consumes(stream, notify);
}
inline void notify_reached(const void* event) {
  if (observer != nullptr) [[unlikely]]
    observer->reached(event);
}
inline void notify_synchronised(const Stream* stream) {
  if (observer != nullptr) [[unlikely]]
    observer->synchronised(stream);
}

}  // namespace openaclnn

// ---- the work of streams, as `openaclnn trace` and profilers listen to it ----
//
// Without a listener, each piece of work costs one load before and one after it.

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
