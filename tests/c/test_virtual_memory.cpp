// SPDX-License-Identifier: Apache-2.0
// Reserved addresses and physical memory: what is refused, with which sentence, and what maps
// where.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "virtual_memory.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

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

// Programs try this first: whether addresses can be reserved decides which allocator they take.
void without_a_device() {
  int32_t device = -1;
  CHECK_EQ(aclrtGetDevice(&device), 107002);
  char* base = reserve(2 * kGranule);
  const aclrtDrvMemHandle handle = physical(kGranule);
  CHECK_EQ(aclrtMapMem(base, kGranule, 0, handle, 0), 0);
  base[kGranule - 1] = 3;
  CHECK_EQ(aclrtUnmapMem(base), 0);
  CHECK_EQ(aclrtMapMem(base + kGranule, kGranule, 0, handle, 0), 0);
  CHECK_EQ(base[2 * kGranule - 1], 3);
  CHECK_EQ(aclrtUnmapMem(base + kGranule), 0);
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
  CHECK_EQ(aclrtFreePhysical(handle), 0);
  CHECK_EQ(aclrtGetDevice(&device), 107002);
}

void sizes() {
  const aclrtPhysicalMemProp prop = on_device();
  aclrtPhysicalMemProp huge = prop;
  huge.memAttr = ACL_HBM_MEM_HUGE1G;
  aclrtDrvMemHandle handle = nullptr;
  void* address = nullptr;
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
    CHECK_FAILS(aclrtMallocPhysical(&handle, size, &prop, 0), 207001, "out of memory: ");
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
                "out of address space: ");
  }
  CHECK(address == nullptr);
  for (size_t size : {size_t{1}, kGranule - 1, 3 * kGranule, size_t{32} << 30}) {
    CHECK_EQ(aclrtReleaseMemAddress(reserve(size)), 0);  // any size: programs reserve all there is
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// At a requested address, unless it is in use.
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
              "the 1073741824 bytes at expectPtr 0x");
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
  CHECK_FAILS(aclrtMapMem(base, kGranule, 0, foreign, 0), 107017, "aclrtMapMem: handle 0x");
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
  CHECK_FAILS(aclrtMapMem(base - kGranule, kGranule, 0, one, 0), 107000, "lies in no reservation");
  CHECK_FAILS(aclrtMapMem(base + 8 * kGranule, kGranule, 0, one, 0), 107000,
              "lies in no reservation");
  CHECK_FAILS(aclrtMapMem(base + 7 * kGranule, 2 * kGranule, 0, two, 0), 107000,
              "size must be at most 2097152, the bytes from virPtr to the end of what is reserved");

  CHECK_EQ(aclrtMapMem(base + 2 * kGranule, 2 * kGranule, 0, two, 0), 0);
  CHECK_FAILS(aclrtMapMem(base + 2 * kGranule, 2 * kGranule, 0, two, 0), 107000,
              "overlap 4194304 bytes mapped at");
  CHECK_FAILS(aclrtMapMem(base + 3 * kGranule, kGranule, 0, one, 0), 107000, "unmap those first");
  CHECK_FAILS(aclrtMapMem(base + kGranule, 2 * kGranule, 0, two, 0), 107000, "unmap those first");

  CHECK_FAILS(aclrtUnmapMem(nullptr), 100000, "aclrtUnmapMem: virPtr must not be NULL");
  for (char* wrong : {base, base + 3 * kGranule, base + 2 * kGranule + 1, base + 4 * kGranule}) {
    CHECK_FAILS(aclrtUnmapMem(wrong), 107000, "no mapping begins at virPtr");
  }
  CHECK_EQ(aclrtUnmapMem(foreign), 107000);
  CHECK_FAILS(aclrtReleaseMemAddress(base), 107000, "1 mappings are left at virPtr");
  CHECK_EQ(aclrtUnmapMem(base + 2 * kGranule), 0);
  CHECK_EQ(aclrtUnmapMem(base + 2 * kGranule), 107000);
  CHECK_FAILS(aclrtReleaseMemAddress(base + kGranule), 107000, "no reservation begins at virPtr");
  CHECK_FAILS(aclrtReleaseMemAddress(nullptr), 100000, "virPtr must not be NULL");
  CHECK_EQ(aclrtReleaseMemAddress(foreign), 107000);
  CHECK_EQ(aclrtReleaseMemAddress(base), 0);
  CHECK_FAILS(aclrtReleaseMemAddress(base), 107000, "was released or never reserved");
  CHECK_FAILS(aclrtMapMem(base, kGranule, 0, one, 0), 107000, "lies in no reservation");

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

}  // namespace

int main() {
  setenv("OPENACLNN_DEVICES", "2", 1);
  granularity();
  without_a_device();
  wrong_properties();
  sizes();
  expected_address();
  mapping();
  one_memory_twice();
  return check_result();
}
