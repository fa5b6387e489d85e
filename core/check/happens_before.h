// SPDX-License-Identifier: Apache-2.0
// Vector clocks of the host and of every stream show what happened before what.
//
// All threads of the host are one actor, because their synchronisation is not visible here: races
// between threads may be missed, but none is reported wrongly. Work on a stream happens after what
// the host knew at submission and after earlier work of that stream. It happens before the host or
// another stream only through a synchronisation or an event. An access that happens before the
// host's present is dropped: everything later is ordered after it.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/tensor.h"
#include "core/check/stack.h"

namespace openaclnn {
class Stream;
}

namespace openaclnn::check {

struct Access {
  const char* call;
  const char* argument;
  uintptr_t low, high;  // the program's addresses
  bool read, written;
  bool moved = false;                           // read only to be moved
  std::shared_ptr<const Tensor> view;           // only if it has gaps between low and high
  uintptr_t storage_low = 0, storage_high = 0;  // of a view with gaps; else 0
  Stack stack;
  const Stream* stream = nullptr;  // nullptr: the host
  uint32_t actor = 0, epoch = 0;
  bool is_judged = true;  // false: its order is not known (HappensBefore::consumes)
};

// Not safe for two threads at once.
class HappensBefore {
 public:
  // The stream (nullptr: the host) starts new work.
  void begin(const Stream* stream);
  // Records an access of that work to a block. Returns an unordered conflicting access, or nullptr;
  // valid until the next call.
  const Access* add(uintptr_t block, Access access);
  // Returns an access to these bytes that does not happen before the host's present, or nullptr.
  const Access* pending(uintptr_t block, uintptr_t low, uintptr_t high);
  void forget(uintptr_t block) { accesses_.erase(block); }
  void forget(uintptr_t block, uintptr_t low, uintptr_t high);  // accesses within

  void synchronised(const Stream* stream);
  void recorded(const void* event, const Stream* stream);
  void waits(const Stream* stream, const void* event);
  void reached(const void* event);
  void forget_event(const void* event) { events_.erase(event); }
  // The stream waits for a record of the notification, the next one if none is left. Until that is
  // known its order is not, and its accesses are not judged. nullptr: not before the host waits for
  // the stream.
  void consumes(const Stream* stream, const void* notify);

 private:
  using Clock = std::vector<uint32_t>;           // by actor; the host is 0
  static constexpr size_t kMostAccesses = 4096;  // to one block; the oldest are forgotten

  uint32_t actor_of(const Stream* stream);
  bool is_known(uint32_t actor, const Access& access) const;
  static void join(Clock& clock, const Clock& other);
  void drop_known(std::vector<Access>& accesses);

  std::unordered_map<const Stream*, uint32_t> actors_;
  std::vector<Clock> clocks_ = {Clock(1)};
  std::unordered_map<const void*, Clock> events_;
  std::vector<std::pair<const Stream*, const void*>> awaited_;  // of consumes, without a record
  std::unordered_map<uintptr_t, std::vector<Access>> accesses_;
  Access collided_;
};

}  // namespace openaclnn::check
