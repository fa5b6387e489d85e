// SPDX-License-Identifier: Apache-2.0
// Mapped memory in use: the same memory in several places, copies and operators across the border
// of two mappings, devices, many handles, threads, fork. In the end the system gets the memory
// back.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "virtual_memory.h"

namespace {

// ---- what others see ----

void copies() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  char* base = reserve(16 * kGranule);
  aclrtDrvMemHandle one = physical(kGranule), two = physical(2 * kGranule);
  CHECK_EQ(aclrtMapMem(base, kGranule, 0, one, 0), 0);
  CHECK_EQ(aclrtMapMem(base + kGranule, 2 * kGranule, 0, two, 0), 0);
  const size_t room = 3 * kGranule;  // over both
  std::vector<char> host(room + 1, 5), back(room + 1, 0);
  CHECK_EQ(aclrtMemcpy(base, room, host.data(), room, kUp), 0);
  CHECK_EQ(aclrtMemcpy(back.data(), room, base, room, kDown), 0);
  CHECK_EQ(std::memcmp(host.data(), back.data(), room), 0);
  CHECK_FAILS(aclrtMemcpy(base, room + 1, host.data(), room + 1, kUp), 107000,
              "count must be at most 6291456, the bytes");
  CHECK_FAILS(aclrtMemcpy(host.data(), room, base + kGranule + 7, 2 * kGranule, kDown), 107000,
              "count must be at most 4194297, the bytes");
  CHECK_FAILS(aclrtMemset(base + room, 1, 0, 1), 107000,
              "nothing is mapped at devPtr");  // reserved, and nothing there
  CHECK_FAILS(aclrtMemcpy(host.data(), 1, base + 15 * kGranule, 1, kDown), 107000,
              "nothing is mapped at src");
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtMemsetAsync(base + room, 1, 0, 1, stream), 107000);
  CHECK_EQ(aclrtMemcpyAsync(base, SIZE_MAX, host.data(), room + 1, kUp, stream), 107000);
  CHECK_EQ(aclrtMemsetAsync(base, room, 6, room, stream), 0);  // acl's memory: no wait within
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(first_byte(base + room - 1), 6);
  CHECK_EQ(aclrtDestroyStream(stream), 0);

  aclrtPtrAttributes attributes;
  CHECK_EQ(aclrtPointerGetAttributes(base + room - 1, &attributes), 0);
  CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  CHECK_EQ(attributes.location.id, 0u);
  CHECK_EQ(aclrtPointerGetAttributes(base + room, &attributes), 0);
  CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);

  CHECK_FAILS(aclrtFree(base), 107000, "is mapped memory; unmap it with aclrtUnmapMem");
  CHECK_FAILS(aclrtFree(base + room), 107000,
              "is a reserved address; release it with aclrtReleaseMemAddress");
  CHECK_FAILS(aclrtFreeHost(base), 107000, "is mapped memory");
  CHECK_EQ(aclrtUnmapMem(base), 0);
  CHECK_EQ(aclrtMemset(base, 1, 0, 1), 107000);
  CHECK_EQ(first_byte(base + kGranule), 6);  // the other one stays
  CHECK_EQ(aclrtUnmapMem(base + kGranule), 0);
  CHECK_EQ(aclrtFreePhysical(one), 0);
  CHECK_EQ(aclrtFreePhysical(two), 0);
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
  CHECK_EQ(aclrtPointerGetAttributes(base, &attributes), 0);
  CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// An operator works across the border of two mappings.
void operators() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  char* base = reserve(2 * kGranule);
  aclrtDrvMemHandle one = physical(kGranule), two = physical(kGranule);
  CHECK_EQ(aclrtMapMem(base, kGranule, 0, one, 0), 0);
  CHECK_EQ(aclrtMapMem(base + kGranule, kGranule, 0, two, 0), 0);
  constexpr int64_t kCount = 1 << 16;
  std::vector<float> x(kCount);
  for (int64_t i = 0; i < kCount; ++i) x[i] = static_cast<float>(i - kCount / 2);
  char* at = base + kGranule - kCount * 2;
  CHECK_EQ(aclrtMemcpy(at, kCount * 4, x.data(), kCount * 4, kUp), 0);
  aclTensor* self =
      aclCreateTensor(&kCount, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &kCount, 1, at);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_EQ(aclnnInplaceLeakyReluGetWorkspaceSize(self, slope, &size, &executor), 0);
  CHECK_EQ(aclnnInplaceLeakyRelu(nullptr, size, executor, nullptr), 0);
  CHECK_EQ(aclDestroyTensor(self), 0);  // before the work is done
  CHECK_EQ(aclDestroyScalar(slope), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  std::vector<float> y(kCount);
  CHECK_EQ(aclrtMemcpy(y.data(), kCount * 4, at, kCount * 4, kDown), 0);
  int64_t wrong = 0;
  for (int64_t i = 0; i < kCount; ++i) wrong += y[i] != (x[i] > 0 ? x[i] : x[i] * 0.5f);
  CHECK_EQ(wrong, 0);
  CHECK_EQ(aclrtUnmapMem(base), 0);
  CHECK_EQ(aclrtUnmapMem(base + kGranule), 0);
  CHECK_EQ(aclrtFreePhysical(one), 0);
  CHECK_EQ(aclrtFreePhysical(two), 0);
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// ---- devices ----

void devices() {
  int32_t can = -1;
  CHECK_FAILS(aclrtDeviceEnablePeerAccess(1, 0), 107002, "call aclrtSetDevice first");
  CHECK_FAILS(aclrtDeviceDisablePeerAccess(1), 107002, "call aclrtSetDevice first");
  CHECK_EQ(aclrtDeviceCanAccessPeer(&can, 0, 1), 0);
  CHECK_EQ(can, 1);
  CHECK_FAILS(aclrtDeviceCanAccessPeer(nullptr, 0, 1), 100000, "canAccessPeer must not be NULL");
  CHECK_FAILS(aclrtDeviceCanAccessPeer(&can, 2, 1), 107001,
              "deviceId must be in [0, 2), but got 2");
  CHECK_FAILS(aclrtDeviceCanAccessPeer(&can, 0, -1), 107001,
              "peerDeviceId must be in [0, 2), but got -1");
  CHECK_FAILS(aclrtDeviceCanAccessPeer(&can, 1, 1), 107000,
              "peerDeviceId must be another device than 1");
  CHECK_EQ(aclrtSetDevice(1), 0);
  CHECK_FAILS(aclrtDeviceEnablePeerAccess(0, 1), 107000, "flags must be 0, but got 1");
  CHECK_FAILS(aclrtDeviceEnablePeerAccess(1, 0), 107000, "must be another device than 1");
  CHECK_EQ(aclrtDeviceEnablePeerAccess(2, 0), 107001);
  for (int i = 0; i < 2; ++i) CHECK_EQ(aclrtDeviceEnablePeerAccess(0, 0), 0);  // before each copy
  CHECK_EQ(aclrtDeviceDisablePeerAccess(0), 0);
  CHECK_EQ(aclrtDeviceDisablePeerAccess(1), 107000);

  // A reservation belongs to the device of what is mapped in it.
  char* base = reserve(2 * kGranule);
  aclrtDrvMemHandle of_0 = physical(kGranule, 0), of_1 = physical(kGranule, 1);
  CHECK_EQ(aclrtMapMem(base, kGranule, 0, of_1, 0), 0);
  CHECK_FAILS(
      aclrtMapMem(base + kGranule, kGranule, 0, of_0, 0), 107000,
      "handle must be memory of device 1, as what is mapped in the same reservation, but is "
      "of device 0");
  aclrtPtrAttributes attributes;
  CHECK_EQ(aclrtPointerGetAttributes(base, &attributes), 0);
  CHECK_EQ(attributes.location.id, 1u);
  CHECK_EQ(aclrtUnmapMem(base), 0);
  CHECK_EQ(aclrtMapMem(base + kGranule, kGranule, 0, of_0, 0), 0);
  CHECK_EQ(aclrtPointerGetAttributes(base + kGranule, &attributes), 0);
  CHECK_EQ(attributes.location.id, 0u);

  // Everything can also end late, as in programs that reset the device first.
  CHECK_EQ(aclrtResetDevice(1), 0);
  CHECK_EQ(aclrtMapMem(base, kGranule, 0, of_0, 0), 0);  // needs no device, nor does unmapping
  CHECK_EQ(aclrtUnmapMem(base), 0);
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclFinalize(), 0);
  CHECK_EQ(aclrtUnmapMem(base + kGranule), 0);
  CHECK_EQ(aclrtFreePhysical(of_0), 0);
  CHECK_EQ(aclrtFreePhysical(of_1), 0);
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
}

// ---- many, threads, processes ----

// More handles than a process may have files, each mapped twice.
void many() {
  constexpr size_t kMany = 3000;
  CHECK_EQ(aclrtSetDevice(0), 0);
  char* base = reserve(2 * kMany * kGranule);
  std::vector<aclrtDrvMemHandle> handles(kMany);
  for (size_t i = 0; i < kMany; ++i) {
    handles[i] = physical(kGranule);
    CHECK_EQ(aclrtMapMem(base + i * kGranule, kGranule, 0, handles[i], 0), 0);
    CHECK_EQ(aclrtMapMem(base + (2 * kMany - 1 - i) * kGranule, kGranule, 0, handles[i], 0), 0);
  }
  for (size_t i = 0; i < kMany; i += 97) {
    char byte = static_cast<char>(i % 100);
    CHECK_EQ(aclrtMemcpy(base + i * kGranule, 1, &byte, 1, kUp), 0);
    CHECK_EQ(first_byte(base + (2 * kMany - 1 - i) * kGranule), byte);
  }
  CHECK_EQ(aclrtMemset(base, 1, 0, 2 * kMany * kGranule + 1), 107000);
  for (size_t i = 0; i < 2 * kMany; ++i) CHECK_EQ(aclrtUnmapMem(base + i * kGranule), 0);
  for (aclrtDrvMemHandle handle : handles) CHECK_EQ(aclrtFreePhysical(handle), 0);
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// Threads map, unmap and copy in parts of one reservation, and some race for the same part.
void threads() {
  constexpr int kThreads = 4, kRounds = 200;
  CHECK_EQ(aclrtSetDevice(0), 0);
  char* base = reserve((kThreads + 1) * kGranule);
  aclrtDrvMemHandle shared = physical(kGranule);
  std::atomic<int> mapped = 0, unmapped = 0;
  const auto work = [&](int id) {
    CHECK_EQ(aclrtSetDevice(0), 0);
    char* own = base + id * kGranule;
    char* contested = base + kThreads * kGranule;
    for (int i = 0; i < kRounds; ++i) {
      aclrtDrvMemHandle handle = physical(kGranule);
      CHECK_EQ(aclrtMapMem(own, kGranule, 0, handle, 0), 0);
      CHECK_EQ(aclrtMemset(own, kGranule, i % 100 + 1, 64), 0);
      CHECK_EQ(first_byte(own), i % 100 + 1);
      mapped += aclrtMapMem(contested, kGranule, 0, shared, 0) == 0;
      unmapped += aclrtUnmapMem(contested) == 0;
      CHECK_EQ(aclrtUnmapMem(own), 0);
      CHECK_EQ(aclrtFreePhysical(handle), 0);
    }
    aclGetRecentErrMsg();
    CHECK_EQ(aclrtResetDevice(0), 0);
  };
  std::vector<std::thread> all;
  for (int id = 0; id < kThreads; ++id) all.emplace_back(work, id);
  for (std::thread& thread : all) thread.join();
  if (aclrtUnmapMem(base + kThreads * kGranule) == 0) ++unmapped;
  CHECK(mapped > 0);
  CHECK_EQ(mapped, unmapped);
  CHECK_EQ(aclrtFreePhysical(shared), 0);
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// Parent and child have the same memory, and their own mappings.
void forks() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  char* base = reserve(2 * kGranule);
  aclrtDrvMemHandle handle = physical(kGranule);
  CHECK_EQ(aclrtMapMem(base, kGranule, 0, handle, 0), 0);
  CHECK_EQ(aclrtMemset(base, 1, 1, 1), 0);
  const pid_t child = fork();
  if (child == 0) {
    CHECK_EQ(first_byte(base), 1);
    CHECK_EQ(aclrtMemset(base, 1, 2, 1), 0);
    CHECK_EQ(aclrtMapMem(base + kGranule, kGranule, 0, handle, 0), 0);
    CHECK_EQ(first_byte(base + kGranule), 2);
    CHECK_EQ(aclrtUnmapMem(base), 0);
    CHECK_EQ(aclrtUnmapMem(base + kGranule), 0);
    CHECK_EQ(aclrtFreePhysical(handle), 0);
    CHECK_EQ(aclrtReleaseMemAddress(base), 0);
    std::_Exit(check_result());
  }
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK_EQ(status, 0);
  CHECK_EQ(first_byte(base), 2);
  CHECK_EQ(aclrtUnmapMem(base), 0);
  CHECK_EQ(aclrtFreePhysical(handle), 0);
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// The memory goes back to the system: the same work again and again takes no more of it.
void gives_back() {
  const auto resident = [] {
    long pages = 0, ignored = 0;
    std::FILE* file = std::fopen("/proc/self/statm", "r");
    CHECK_EQ(std::fscanf(file, "%ld %ld", &ignored, &pages), 2);
    std::fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
  };
  constexpr size_t kSize = 16 * kGranule;
  CHECK_EQ(aclrtSetDevice(0), 0);
  long before = 0;
  for (int i = 0; i < 20; ++i) {
    char* base = reserve(kSize);
    aclrtDrvMemHandle handle = physical(kSize);
    CHECK_EQ(aclrtMapMem(base, kSize, 0, handle, 0), 0);
    if (i % 2 == 0) CHECK_EQ(aclrtFreePhysical(handle), 0);
    CHECK_EQ(aclrtMemset(base, kSize, i, kSize), 0);
    CHECK_EQ(aclrtUnmapMem(base), 0);
    if (i % 2 == 1) CHECK_EQ(aclrtFreePhysical(handle), 0);
    CHECK_EQ(aclrtReleaseMemAddress(base), 0);
    if (i == 3) before = resident();
  }
  CHECK(resident() < before + static_cast<long>(kSize));
  CHECK_EQ(aclrtResetDevice(0), 0);
}

}  // namespace

int main() {
  setenv("OPENACLNN_DEVICES", "2", 1);
  copies();
  operators();
  devices();
  many();
  threads();
  forks();
  gives_back();
  return check_result();
}
