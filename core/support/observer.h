// SPDX-License-Identifier: Apache-2.0
// How check mode and `openaclnn trace` watch the runtime. Without an observer, each call that
// creates, uses or destroys an object and each phase of an operator costs one load and a branch not
// taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/support/reason.h"
#include "core/support/status.h"

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
  void (*initialised)();
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
