// SPDX-License-Identifier: Apache-2.0
// Reserved addresses and physical memory, for the tests of both.
#pragma once

#include <cstdint>

#include "check.h"

constexpr size_t kGranule = size_t{2} << 20;
constexpr auto kUp = ACL_MEMCPY_HOST_TO_DEVICE;
constexpr auto kDown = ACL_MEMCPY_DEVICE_TO_HOST;

inline aclrtPhysicalMemProp on_device(uint32_t device = 0) {
  aclrtPhysicalMemProp prop = {};
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location = {device, ACL_MEM_LOCATION_TYPE_DEVICE};
  return prop;
}

inline aclrtDrvMemHandle physical(size_t size, uint32_t device = 0) {
  const aclrtPhysicalMemProp prop = on_device(device);
  aclrtDrvMemHandle handle = nullptr;
  CHECK_EQ(aclrtMallocPhysical(&handle, size, &prop, 0), 0);
  return handle;
}

inline char* reserve(size_t size) {
  void* address = nullptr;
  CHECK_EQ(aclrtReserveMemAddress(&address, size, 0, nullptr, 1), 0);
  CHECK_EQ(reinterpret_cast<uintptr_t>(address) % kGranule, 0u);
  return static_cast<char*>(address);
}

inline char first_byte(const char* address) {
  char byte = 0;
  CHECK_EQ(aclrtMemcpy(&byte, 1, address, 1, kDown), 0);
  return byte;
}
