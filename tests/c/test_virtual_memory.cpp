// SPDX-License-Identifier: Apache-2.0
// Reserved addresses and physical memory: what maps where, what is refused with which sentence, and
// what copies, attributes, fork and threads make of it.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"

namespace {

constexpr size_t kGranule = size_t{2} << 20;
constexpr auto kUp = ACL_MEMCPY_HOST_TO_DEVICE;
constexpr auto kDown = ACL_MEMCPY_DEVICE_TO_HOST;

int an_object = 0;
void* const foreign = &an_object;

aclrtPhysicalMemProp on_device(uint32_t device = 0) {
  aclrtPhysicalMemProp prop = {};
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location = {device, ACL_MEM_LOCATION_TYPE_DEVICE};
  return prop;
}

aclrtDrvMemHandle physical(size_t size, uint32_t device = 0) {
  const aclrtPhysicalMemProp prop = on_device(device);
  aclrtDrvMemHandle handle = nullptr;
  CHECK_EQ(aclrtMallocPhysical(&handle, size, &prop, 0), 0);
  return handle;
}

char* reserve(size_t size) {
  void* address = nullptr;
  CHECK_EQ(aclrtReserveMemAddress(&address, size, 0, nullptr, 1), 0);
  CHECK_EQ(reinterpret_cast<uintptr_t>(address) % kGranule, 0u);
  return static_cast<char*>(address);
}

char first_byte(const char* address) {
  char byte = 0;
  CHECK_EQ(aclrtMemcpy(&byte, 1, address, 1, kDown), 0);
  return byte;
}

// An enumerator that is none, as a program may pass it.
template <class Enumeration>
Enumeration none(int value) {
  Enumeration made;
  std::memcpy(&made, &value, sizeof made);
  return made;
}

// ---- what is asked for ----

void granularity() {
  aclrtPhysicalMemProp prop = on_device();
  const auto least = ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM;
  size_t size = 0;
  for (auto option : {least, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED}) {
    CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, option, &size), 0);  // before a device is set
    CHECK_EQ(size, kGranule);
  }
  for (int attribute = 0; attribute < 18; ++attribute) {
    prop.memAttr = static_cast<aclrtMemAttr>(attribute);
    CHECK_EQ(aclrtMemGetAllocationGranularity(&prop, least, &size), 0);
    const bool huge = attribute == 10 || attribute == 11 || attribute == 14 || attribute == 17;
    CHECK_EQ(size, huge ? size_t{1} << 30 : kGranule);
  }
  prop = on_device();
  CHECK_FAILS(aclrtMemGetAllocationGranularity(nullptr, least, &size), 100000,
              "aclrtMemGetAllocationGranularity: prop must not be NULL");
  CHECK_FAILS(aclrtMemGetAllocationGranularity(&prop, least, nullptr), 100000,
              "granularity must not be NULL");
  CHECK_FAILS(aclrtMemGetAllocationGranularity(&prop, ACL_RT_MEM_ALLOC_GRANULARITY_UNDEF, &size),
              100000, "option must be in [0, 1], but got 65535");
}

void wrong_properties() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  struct Wrong {
    aclrtPhysicalMemProp prop;
    int code;
    const char* sentence;
  };
  std::vector<Wrong> all(8, {on_device(), 100000, ""});
  all[0].prop.handleType = none<aclrtMemHandleType>(1);
  all[0].sentence = "prop->handleType must be ACL_MEM_HANDLE_TYPE_NONE, 0, but got 1";
  all[1].prop.allocationType = none<aclrtMemAllocationType>(1);
  all[1].sentence = "prop->allocationType must be ACL_MEM_ALLOCATION_TYPE_PINNED, 0, but got 1";
  all[2].prop.memAttr = none<aclrtMemAttr>(18);
  all[2].sentence = "prop->memAttr must be in [0, 17], but got 18";
  all[3].prop.memAttr = none<aclrtMemAttr>(-1);
  all[3].sentence = "prop->memAttr must be in [0, 17], but got -1";
  all[4].prop.location.type = none<aclrtMemLocationType>(5);
  all[4].sentence = "prop->location.type must be in [0, 4], but got 5";
  all[5].prop.location.type = ACL_MEM_LOCATION_TYPE_HOST;
  all[5].code = 207000;
  all[5].sentence = "prop->location.type must be ACL_MEM_LOCATION_TYPE_DEVICE, 1, but got 0";
  all[6].prop.location.id = 2;
  all[6].code = 107001;
  all[6].sentence = "prop->location.id must be in [0, 2), but got 2";
  all[7].prop.handleType = ACL_MEM_HANDLE_TYPE_POSIX;
  all[7].code = 207000;
  all[7].sentence = "but got ACL_MEM_HANDLE_TYPE_POSIX";
  for (Wrong& wrong : all) {
    size_t size = 1;
    aclrtDrvMemHandle handle = foreign;
    CHECK_FAILS(
        aclrtMemGetAllocationGranularity(&wrong.prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &size),
        wrong.code, wrong.sentence);
    CHECK_FAILS(aclrtMallocPhysical(&handle, kGranule, &wrong.prop, 0), wrong.code, wrong.sentence);
    CHECK_EQ(size, 1u);
    CHECK(handle == foreign);
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
}

void sizes() {
  const aclrtPhysicalMemProp prop = on_device();
  aclrtPhysicalMemProp huge = prop;
  huge.memAttr = ACL_HBM_MEM_HUGE1G;
  aclrtDrvMemHandle handle = nullptr;
  void* address = nullptr;
  CHECK_FAILS(aclrtMallocPhysical(&handle, kGranule, &prop, 0), 107002,
              "call aclrtSetDevice first");
  CHECK_FAILS(aclrtReserveMemAddress(&address, kGranule, 0, nullptr, 1), 107002,
              "aclrtReserveMemAddress: a device must be set");
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_FAILS(aclrtMallocPhysical(nullptr, kGranule, &prop, 0), 100000, "handle must not be NULL");
  CHECK_FAILS(aclrtMallocPhysical(&handle, kGranule, nullptr, 0), 100000, "prop must not be NULL");
  CHECK_FAILS(aclrtMallocPhysical(&handle, 0, &prop, 0), 100000, "size must be greater than 0");
  CHECK_FAILS(aclrtMallocPhysical(&handle, kGranule, &prop, 1), 107000,
              "aclrtMallocPhysical: flags must be 0, but got 1");
  for (size_t size : {size_t{1}, kGranule - 1, kGranule + 4096, SIZE_MAX}) {
    CHECK_FAILS(aclrtMallocPhysical(&handle, size, &prop, 0), 107000,
                "size must be a multiple of 2097152, the granularity, but got");
  }
  CHECK_FAILS(aclrtMallocPhysical(&handle, kGranule, &huge, 0), 107000,
              "size must be a multiple of 1073741824");
  for (size_t size : {size_t{1} << 48, SIZE_MAX - kGranule + 1, SIZE_MAX / 2 + 1}) {
    CHECK_FAILS(aclrtMallocPhysical(&handle, size, &prop, 0), 207001,
                "size must be available as memory, but");
  }
  CHECK(handle == nullptr);

  CHECK_FAILS(aclrtReserveMemAddress(nullptr, kGranule, 0, nullptr, 1), 100000,
              "virPtr must not be NULL");
  CHECK_FAILS(aclrtReserveMemAddress(&address, 0, 0, nullptr, 1), 100000,
              "size must be greater than 0");
  CHECK_FAILS(aclrtReserveMemAddress(&address, kGranule, 64, nullptr, 1), 107000,
              "alignment must be 0, but got 64");
  CHECK_FAILS(aclrtReserveMemAddress(&address, kGranule, 0, nullptr, 2), 107000,
              "flags must be 0, for normal pages, or 1, for huge ones, but got 2");
  CHECK_FAILS(aclrtReserveMemAddress(&address, kGranule, 0, foreign, 1), 107000,
              "expectPtr must be NULL or a multiple of 1 GiB");
  for (size_t size : {SIZE_MAX, SIZE_MAX - kGranule, SIZE_MAX - 2 * kGranule, size_t{1} << 62}) {
    CHECK_FAILS(aclrtReserveMemAddress(&address, size, 0, nullptr, 1), 207001,
                "size must be available as addresses");
  }
  CHECK(address == nullptr);
  for (size_t size : {size_t{1}, kGranule - 1, 3 * kGranule, size_t{32} << 30}) {
    CHECK_EQ(aclrtReleaseMemAddress(reserve(size)), 0);  // any size: programs reserve all there is
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// The program says where; what is there already is not given.
void expected_address() {
  constexpr size_t kUnit = size_t{1} << 30;
  CHECK_EQ(aclrtSetDevice(0), 0);
  char* probe = reserve(4 * kUnit);
  const auto next = (reinterpret_cast<uintptr_t>(probe) + kUnit) / kUnit * kUnit;
  CHECK_EQ(aclrtReleaseMemAddress(probe), 0);
  void *wanted = reinterpret_cast<void*>(next), *first = nullptr, *second = nullptr;
  CHECK_EQ(aclrtReserveMemAddress(&first, kUnit, 0, wanted, 1), 0);
  CHECK(first == wanted);
  CHECK_FAILS(aclrtReserveMemAddress(&second, kUnit, 0, wanted, 1), 207001,
              "the 1073741824 bytes at expectPtr must be free, but those at");
  CHECK(second == nullptr);
  CHECK_EQ(aclrtReleaseMemAddress(first), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// ---- mapping ----

void mapping() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  char* base = reserve(8 * kGranule);
  aclrtDrvMemHandle one = physical(kGranule), two = physical(2 * kGranule);
  CHECK_FAILS(aclrtMapMem(nullptr, kGranule, 0, one, 0), 100000, "virPtr must not be NULL");
  CHECK_FAILS(aclrtMapMem(base, 0, 0, one, 0), 100000, "size must be greater than 0");
  CHECK_FAILS(aclrtMapMem(base, kGranule, 0, nullptr, 0), 100000, "handle must not be NULL");
  CHECK_FAILS(aclrtMapMem(base, kGranule, 0, foreign, 0), 107017,
              "aclrtMapMem: handle must be alive");
  CHECK_FAILS(aclrtMapMem(base, kGranule, 0, base, 0), 107017, "was freed or never allocated");
  CHECK_FAILS(aclrtMapMem(base, kGranule, kGranule, two, 0), 107000,
              "offset must be 0, but got 2097152");
  CHECK_FAILS(aclrtMapMem(base, kGranule, SIZE_MAX, two, 0), 107000, "offset must be 0");
  CHECK_FAILS(aclrtMapMem(base, kGranule, 0, one, 7), 107000, "flags must be 0, but got 7");
  for (size_t size : {size_t{1}, kGranule, 3 * kGranule, SIZE_MAX, SIZE_MAX - kGranule + 1}) {
    CHECK_FAILS(aclrtMapMem(base, size, 0, two, 0), 107000,
                "size must be that of the memory, 4194304, but got");
  }
  CHECK_FAILS(aclrtMapMem(base + 4096, kGranule, 0, one, 0), 107000,
              "virPtr must be a multiple of 2097152, the granularity, but is");
  CHECK_FAILS(aclrtMapMem(base - kGranule, kGranule, 0, one, 0), 107000,
              "virPtr must lie in addresses that are reserved, but");
  CHECK_FAILS(aclrtMapMem(base + 8 * kGranule, kGranule, 0, one, 0), 107000,
              "must lie in addresses");
  CHECK_FAILS(aclrtMapMem(base + 7 * kGranule, 2 * kGranule, 0, two, 0), 107000,
              "size must be at most 2097152, the bytes from virPtr to the end of what is reserved");

  CHECK_EQ(aclrtMapMem(base + 2 * kGranule, 2 * kGranule, 0, two, 0), 0);
  CHECK_FAILS(aclrtMapMem(base + 2 * kGranule, 2 * kGranule, 0, two, 0), 107000,
              "must be unmapped, but 4194304 bytes are mapped at");
  CHECK_FAILS(aclrtMapMem(base + 3 * kGranule, kGranule, 0, one, 0), 107000, "must be unmapped");
  CHECK_FAILS(aclrtMapMem(base + kGranule, 2 * kGranule, 0, two, 0), 107000, "must be unmapped");

  CHECK_FAILS(aclrtUnmapMem(nullptr), 100000, "aclrtUnmapMem: virPtr must not be NULL");
  for (char* wrong : {base, base + 3 * kGranule, base + 2 * kGranule + 1, base + 4 * kGranule}) {
    CHECK_FAILS(aclrtUnmapMem(wrong), 107000, "virPtr must be where memory was mapped, but at");
  }
  CHECK_EQ(aclrtUnmapMem(foreign), 107000);
  CHECK_FAILS(aclrtReleaseMemAddress(base), 107000,
              "everything at virPtr must be unmapped first, but memory is mapped in 1 places");
  CHECK_EQ(aclrtUnmapMem(base + 2 * kGranule), 0);
  CHECK_EQ(aclrtUnmapMem(base + 2 * kGranule), 107000);
  CHECK_FAILS(aclrtReleaseMemAddress(base + kGranule), 107000,
              "virPtr must be the start of a reservation, but");
  CHECK_FAILS(aclrtReleaseMemAddress(nullptr), 100000, "virPtr must not be NULL");
  CHECK_EQ(aclrtReleaseMemAddress(foreign), 107000);
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
  CHECK_FAILS(aclrtReleaseMemAddress(base), 107000, "was released or never reserved");
  CHECK_FAILS(aclrtMapMem(base, kGranule, 0, one, 0), 107000, "must lie in addresses");

  CHECK_FAILS(aclrtFreePhysical(nullptr), 100000, "aclrtFreePhysical: handle must not be NULL");
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtFreePhysical(stream), 107017);  // a handle of another kind
  CHECK_EQ(aclrtDestroyStream(one), 107017);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtFreePhysical(one), 0);
  CHECK_FAILS(aclrtFreePhysical(one), 107017, "was freed or never allocated");
  CHECK_EQ(aclrtFreePhysical(two), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// One handle in two places is one memory; it keeps its bytes while it is mapped nowhere, and stays
// where it is mapped when the handle goes.
void one_memory_twice() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  char* base = reserve(4 * kGranule);
  char* other = reserve(2 * kGranule);
  aclrtDrvMemHandle handle = physical(2 * kGranule);
  const size_t size = 2 * kGranule;
  CHECK_EQ(aclrtMapMem(base, size, 0, handle, 0), 0);
  CHECK_EQ(aclrtMapMem(base + size, size, 0, handle, 0), 0);
  CHECK_EQ(aclrtMapMem(other, size, 0, handle, 0), 0);
  CHECK_EQ(aclrtMemset(base, size, 1, size), 0);
  CHECK_EQ(aclrtMemset(other + kGranule, kGranule, 2, kGranule), 0);
  for (char* place : {base, base + size, other}) {
    CHECK_EQ(first_byte(place), 1);
    CHECK_EQ(first_byte(place + kGranule - 1), 1);
    CHECK_EQ(first_byte(place + kGranule), 2);
    CHECK_EQ(first_byte(place + size - 1), 2);
  }
  for (char* place : {base, base + size, other}) CHECK_EQ(aclrtUnmapMem(place), 0);
  CHECK_EQ(aclrtMapMem(base, size, 0, handle, 0), 0);
  CHECK_EQ(first_byte(base), 1);
  CHECK_EQ(first_byte(base + size - 1), 2);
  CHECK_EQ(aclrtFreePhysical(handle), 0);
  CHECK_EQ(first_byte(base + kGranule), 2);
  CHECK_EQ(aclrtMemset(base, size, 3, size), 0);
  CHECK_EQ(first_byte(base + size - 1), 3);
  CHECK_EQ(aclrtMapMem(other, size, 0, handle, 0), 107017);
  CHECK_EQ(aclrtUnmapMem(base), 0);

  // New memory there is other memory.
  aclrtDrvMemHandle fresh = physical(kGranule);
  CHECK_EQ(aclrtMapMem(base, kGranule, 0, fresh, 0), 0);
  CHECK(first_byte(base) != 3);
  CHECK_EQ(aclrtUnmapMem(base), 0);
  CHECK_EQ(aclrtFreePhysical(fresh), 0);
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
  CHECK_EQ(aclrtReleaseMemAddress(other), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

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
              "count must be at most 6291456, the bytes from dst to the end of its allocation");
  CHECK_FAILS(aclrtMemcpy(host.data(), room, base + kGranule + 7, 2 * kGranule, kDown), 107000,
              "count must be at most 4194297, the bytes from src to the end");
  CHECK_FAILS(aclrtMemset(base + room, 1, 0, 1), 107000,
              "devPtr must be memory, but at");  // reserved, and nothing there
  CHECK_FAILS(aclrtMemcpy(host.data(), 1, base + 15 * kGranule, 1, kDown), 107000,
              "addresses are reserved and nothing is mapped");
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

  CHECK_FAILS(aclrtFree(base), 107000, "is mapped memory: unmap it with aclrtUnmapMem");
  CHECK_FAILS(aclrtFree(base + room), 107000,
              "is a reserved address: release it with aclrtReleaseMemAddress");
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

// An operator over the border of two mappings.
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

  // What ends also ends late, as in programs that reset the device first.
  CHECK_EQ(aclrtResetDevice(1), 0);
  CHECK_FAILS(aclrtMapMem(base, kGranule, 0, of_0, 0), 107002, "call aclrtSetDevice first");
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

// Parent and child have the same memory, and mappings of their own.
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
  granularity();
  wrong_properties();
  sizes();
  expected_address();
  mapping();
  one_memory_twice();
  copies();
  operators();
  devices();
  many();
  threads();
  forks();
  gives_back();
  return check_result();
}
