// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/device_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "core/runtime/device.h"
#include "core/support/environment.h"
#include "core/support/no_destructor.h"

namespace openaclnn {
namespace {

struct Use {
  std::atomic<uint64_t> current, peak;
};
Use uses[kMaxDevices];

// 0: none
uint64_t limit() {
  static constinit NoDestructor<uint64_t> found;
  return found.get([] { return environment_bytes("OPENACLNN_DEVICE_MEMORY", 0, "no limit"); });
}

bool fills_with_nan() {
  static constinit NoDestructor<bool> found;
  return found.get([] {
    const char* text = std::getenv("OPENACLNN_FILL");
    if (text == nullptr || *text == '\0') return false;
    const bool is = std::strcmp(text, "nan") == 0;
    if (!is) warn_environment("OPENACLNN_FILL", "nan", text, "no filling");
    return is;
  });
}

size_t pages(int name) {
  return static_cast<size_t>(sysconf(name)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

size_t total_memory() {
  static constinit NoDestructor<size_t> total;  // the system reads a file for it
  return total.get([] { return pages(_SC_PHYS_PAGES); });
}

size_t free_memory() { return pages(_SC_AVPHYS_PAGES); }

Status book_memory(const char* call, int32_t device, size_t asked, size_t bytes) {
  Use& use = uses[device];
  const uint64_t most = limit() == 0 ? UINT64_MAX : limit();
  uint64_t before = use.current.load(std::memory_order_relaxed);
  do {
    if (before > most || bytes > most - before) {
      return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::out_of_memory, call,
                  "out of memory: %zu bytes; device %d has %llu of %llu bytes left "
                  "(OPENACLNN_DEVICE_MEMORY)",
                  asked, device, static_cast<unsigned long long>(before > most ? 0 : most - before),
                  static_cast<unsigned long long>(most));
    }
  } while (!use.current.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return {};
}

void raise_peak(int32_t device) {
  Use& use = uses[device];
  const uint64_t current = use.current.load(std::memory_order_relaxed);
  uint64_t peak = use.peak.load(std::memory_order_relaxed);
  while (peak < current &&
         !use.peak.compare_exchange_weak(peak, current, std::memory_order_relaxed)) {
  }
}

void unbook_memory(int32_t device, size_t bytes) {
  uses[device].current.fetch_sub(bytes, std::memory_order_relaxed);
}

MemoryUse memory_use(int32_t device) {
  return {uses[device].current.load(std::memory_order_relaxed),
          uses[device].peak.load(std::memory_order_relaxed)};
}

size_t device_memory() { return limit() == 0 ? total_memory() : limit(); }

size_t free_device_memory(int32_t device) {
  if (limit() == 0) return free_memory();
  const uint64_t current = memory_use(device).current;
  return current < limit() ? limit() - current : 0;
}

// All bits set are NaN in every floating-point type, -1 in signed integers.
void fill_fresh(void* address, size_t bytes) {
  if (fills_with_nan()) std::memset(address, 0xff, bytes);
}

}  // namespace openaclnn
