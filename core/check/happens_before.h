// SPDX-License-Identifier: Apache-2.0
// Vector clocks of the host and of every stream show what happened before what.
//
// All threads of the host count as one actor that works in order, because their synchronisation is
// not visible here. Some mistakes of several threads are therefore missed, but none is invented.
// Work on a stream comes after what the host knew when it was submitted, and after the work before
// it on that stream; the host, or another stream, comes after it only through a synchronisation or
// an event. An access that the host is known to come after comes before all that follows, and is
// forgotten.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
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
  uintptr_t low, high;  // addresses as the program knows them
  bool read, written;
  std::shared_ptr<const Tensor> view;  // when it leaves gaps between low and high; else nullptr
  uintptr_t storage_low = 0, storage_high = 0;  // where the view leaves gaps in it; else 0
  Stack stack;
  const Stream* stream = nullptr;  // nullptr: the host
  uint32_t actor = 0, epoch = 0;
};

// Not safe for two threads at once.
class HappensBefore {
 public:
  // The stream, or the host for nullptr, starts one more piece of work.
  void begin(const Stream* stream);
  // Records an access of that work to the block of memory. Returns the access that it collides
  // with, or nullptr; the pointer is valid until the next call.
  const Access* add(uintptr_t block, Access access);
  // Returns a use of these bytes of the block that the host does not know to be over, or nullptr.
  const Access* pending(uintptr_t block, uintptr_t low, uintptr_t high);
  void forget(uintptr_t block) { accesses_.erase(block); }
  void forget(uintptr_t block, uintptr_t low, uintptr_t high);  // what lies in between

  void synchronised(const Stream* stream);
  void recorded(const void* event, const Stream* stream);
  void waits(const Stream* stream, const void* event);
  void reached(const void* event);
  void forget_event(const void* event) { events_.erase(event); }

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
  std::unordered_map<uintptr_t, std::vector<Access>> accesses_;
  Access collided_;
};

}  // namespace openaclnn::check
