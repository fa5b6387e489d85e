// SPDX-License-Identifier: Apache-2.0
// The limit of OPENACLNN_DEVICE_MEMORY, for each device by itself and for both kinds of memory, and
// what OPENACLNN_FILL=nan leaves in fresh memory.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "check.h"
#include "virtual_memory.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
const auto any = ACL_MEM_MALLOC_HUGE_FIRST;

size_t free_bytes() {
  size_t free = 0, total = 0;
  CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), 0);
  CHECK_EQ(total, 8 * kMiB);
  return free;
}

uint64_t peak() {
  aclrtMemUsageInfo use{};
  size_t count = 0;
  CHECK_EQ(aclrtGetMemUsageInfo(0, &use, 1, &count), 0);
  return use.memPeakSize;
}

// The pages are in use until both the handle and the last mapping are gone.
void freed_while_mapped() {
  char* base = reserve(2 * kGranule);
  for (const bool handle_first : {true, false}) {
    const aclrtDrvMemHandle handle = physical(kGranule);
    CHECK_EQ(free_bytes(), 8 * kMiB - kGranule);
    CHECK_EQ(aclrtMapMem(base, kGranule, 0, handle, 0), 0);
    CHECK_EQ(aclrtMapMem(base + kGranule, kGranule, 0, handle, 0), 0);
    if (handle_first) CHECK_EQ(aclrtFreePhysical(handle), 0);
    CHECK_EQ(aclrtUnmapMem(base), 0);
    CHECK_EQ(free_bytes(), 8 * kMiB - kGranule);
    base[2 * kGranule - 1] = 1;
    CHECK_EQ(aclrtUnmapMem(base + kGranule), 0);
    CHECK_EQ(free_bytes(), 8 * kMiB - (handle_first ? 0 : kGranule));
    if (!handle_first) CHECK_EQ(aclrtFreePhysical(handle), 0);
    CHECK_EQ(free_bytes(), 8 * kMiB);
  }
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
}

void limit() {
  int64_t total = 0;
  CHECK_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &total), 0);
  CHECK_EQ(total, int64_t{8 << 20});
  CHECK_EQ(free_bytes(), 8 * kMiB);
  void *half = nullptr, *more = nullptr, *host = nullptr;
  CHECK_EQ(aclrtMallocAlign32(&half, 4 * kMiB, any), 0);
  CHECK_EQ(free_bytes(), 4 * kMiB);
  CHECK_FAILS(aclrtMallocAlign32(&more, 4 * kMiB + 1, any), 207001,
              "aclrtMallocAlign32: out of memory: 4194305 bytes; device 0 has 4194304 of 8388608 "
              "bytes left (OPENACLNN_DEVICE_MEMORY)");
  CHECK_EQ(free_bytes(), 4 * kMiB);  // the refusal takes nothing
  CHECK_EQ(aclrtMallocHost(&host, 16 * kMiB), 0);
  CHECK_EQ(aclrtFreeHost(host), 0);
  CHECK_EQ(aclrtSetDevice(1), 0);
  CHECK_EQ(aclrtMalloc(&more, 7 * kMiB, any), 0);
  CHECK_EQ(aclrtFree(more), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);

  aclrtPhysicalMemProp prop{};
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtDrvMemHandle handle = nullptr;
  CHECK_FAILS(aclrtMallocPhysical(&handle, 6 * kMiB, &prop, 0), 207001, "out of memory: 6291456");
  CHECK_EQ(aclrtMallocPhysical(&handle, 4 * kMiB, &prop, 0), 0);
  CHECK_EQ(free_bytes(), size_t{0});
  CHECK_EQ(aclrtFreePhysical(handle), 0);
  CHECK_EQ(aclrtFree(half), 0);
  CHECK_EQ(free_bytes(), 8 * kMiB);

  aclrtMemUsageInfo use{};
  size_t count = 0;
  CHECK_EQ(aclrtGetMemUsageInfo(0, &use, 1, &count), 0);
  CHECK_EQ(use.curMemSize, uint64_t{0});
  CHECK_EQ(use.memPeakSize, uint64_t{8 << 20});
}

// What a graph keeps after the program freed it: free memory, as on a device.
void kept_by_graph() {
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  void *memory = nullptr, *all = nullptr;
  CHECK_EQ(aclrtMalloc(&memory, 6 * kMiB, any), 0);
  CHECK_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), 0);
  CHECK_EQ(aclrtMemsetAsync(memory, 6 * kMiB, 1, 6 * kMiB, stream), 0);
  aclmdlRI graph = nullptr;
  CHECK_EQ(aclmdlRICaptureEnd(stream, &graph), 0);
  CHECK_EQ(aclrtFree(memory), 0);
  CHECK_EQ(free_bytes(), 8 * kMiB);
  CHECK_EQ(aclrtMalloc(&all, 7 * kMiB, any), 0);
  CHECK_EQ(aclrtMemset(all, 7 * kMiB, 7, 7 * kMiB), 0);
  CHECK_EQ(aclmdlRIExecute(graph, -1), 0);  // changes nothing that others have
  for (size_t i = 0; i < 7 * kMiB; i += 4096) CHECK_EQ(static_cast<char*>(all)[i], 7);
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
  CHECK(free_bytes() < kMiB);
  CHECK_EQ(aclrtFree(all), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

// In a process without a limit, where the system refuses what was booked.
void refused_leaves_peak() {
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("OPENACLNN_DEVICE_MEMORY");
    CHECK_EQ(aclInit(nullptr), 0);
    CHECK_EQ(aclrtSetDevice(0), 0);
    void *small = nullptr, *huge = nullptr;
    CHECK_EQ(aclrtMalloc(&small, kMiB, any), 0);
    const uint64_t before = peak();
    CHECK(before >= kMiB);
    CHECK_FAILS(aclrtMalloc(&huge, size_t{1} << 45, any), 207001, "out of memory");
    CHECK_EQ(peak(), before);
    CHECK_EQ(aclrtFree(small), 0);
    std::exit(check_result());
  }
  int ended = 1;
  CHECK_EQ(waitpid(child, &ended, 0), child);
  CHECK_EQ(ended, 0);
}

void filled() {
  for (const size_t size : {size_t{4}, size_t{100}, size_t{100000}, 3 * kMiB}) {
    void* memory = nullptr;
    CHECK_EQ(aclrtMalloc(&memory, size, any), 0);
    std::memset(memory, 0, size);
    CHECK_EQ(aclrtFree(memory), 0);
    CHECK_EQ(aclrtMalloc(&memory, size, any), 0);
    float first = 0, last = 0;
    std::memcpy(&first, memory, 4);
    std::memcpy(&last, static_cast<char*>(memory) + size - 4, 4);
    CHECK(std::isnan(first) && std::isnan(last));
    CHECK_EQ(aclrtFree(memory), 0);
  }
}

}  // namespace

int main() {
  setenv("OPENACLNN_DEVICE_MEMORY", "8MiB", 1);
  setenv("OPENACLNN_FILL", "nan", 1);
  setenv("OPENACLNN_DEVICES", "2", 1);
  refused_leaves_peak();
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  limit();
  kept_by_graph();
  freed_while_mapped();
  filled();
  CHECK_EQ(aclFinalize(), 0);
  return check_result();
}
