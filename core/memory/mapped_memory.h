// SPDX-License-Identifier: Apache-2.0
// Physical memory, and the reserved addresses where the program maps it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "core/support/handles.h"
#include "core/memory/memory.h"
#include "core/runtime/device_memory.h"
#include "core/support/shared_file.h"
#include "core/support/status.h"

namespace openaclnn {

inline constexpr size_t kGranularity = size_t{2} << 20;  // of addresses and of most memory

// Memory in a device's account. The handle and each mapping hold it: freed memory that is still
// mapped is still in use.
class Booking {
 public:
  Booking(int32_t device, size_t size) : device_(device), size_(size) {}
  ~Booking() { unbook_memory(device_, size_); }
  Booking(const Booking&) = delete;
  Booking& operator=(const Booking&) = delete;

 private:
  int32_t device_;
  size_t size_;
};

// Pages that exist while they are mapped anywhere. The handle owns one mapping, `home`, from which
// the others are made by mremap; without that, and when processes share the memory, there is a file
// of these pages. Both are closed when the handle is freed.
struct PhysicalMemory {
  static constexpr bool kPinned = true;

  const size_t size;
  const int32_t device;
  void* home;
  std::shared_ptr<SharedFile> file;  // nullptr: not needed
  std::shared_ptr<Booking> booking;  // nullptr: another process has it
  const bool imported = booking == nullptr;
  bool exported = false;
  const uint64_t serial = next_serial();  // handles are reused

  PhysicalMemory(size_t its_size, int32_t its_device, void* its_home,
                 std::shared_ptr<SharedFile> its_file, std::shared_ptr<Booking> its_booking)
      : size(its_size),
        device(its_device),
        home(its_home),
        file(std::move(its_file)),
        booking(std::move(its_booking)) {}

  static uint64_t next_serial();
};

HandlePool<PhysicalMemory>& physical_memory();

using PinnedMemory = HandlePool<PhysicalMemory>::Pin;
Status find_physical(const char* call, const void* handle, PinnedMemory* memory);

// Maps the pages at `address`, replacing what was mapped there.
Status show_at(const char* call, const PhysicalMemory& memory, void* address);

// Destroys the handle and unmaps home. If two threads do so, one is refused.
Status leave_home(const char* call, PhysicalMemory& memory);

// ---- reserved addresses, and what is mapped there ----

// The flags of a range without access.
inline constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

struct Mapping {
  size_t size;
  uint64_t memory;  // its serial number
  std::shared_ptr<Booking> booking;
  bool leaving = false;  // a thread is unmapping it
};

struct Reservation {
  size_t size;
  int32_t device = 0;  // of what is mapped
  std::map<uintptr_t, Mapping> mappings;
};

using Reservations = std::map<uintptr_t, Reservation>;

// The mutex is held across fork, a leaf (fork.h).
struct Space {
  Space();

  static Space& get();

  // The reservation that the address lies in, or end().
  Reservations::iterator around(uintptr_t address);

  std::mutex mutex;
  Reservations reservations;
};

inline uintptr_t number_of(const void* address) { return reinterpret_cast<uintptr_t>(address); }

}  // namespace openaclnn
