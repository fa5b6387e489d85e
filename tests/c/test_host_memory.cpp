// SPDX-License-Identifier: Apache-2.0
// Registered host memory, managed memory, access to mapped memory, how much memory is used.
#include <cstring>
#include <vector>

#include "check.h"
#include "virtual_memory.h"

namespace {

void registration() {
  std::vector<char> memory(8192), other(64);
  char* p = memory.data();
  void* device = nullptr;
  aclrtPtrAttributes attributes;
  CHECK_EQ(aclrtHostRegister(p, 4096, ACL_HOST_REGISTER_MAPPED, &device), 0);
  CHECK_EQ(device, p);
  CHECK_EQ(aclrtPointerGetAttributes(p + 100, &attributes), 0);
  CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  CHECK_EQ(aclrtPointerGetAttributes(p + 4096, &attributes), 0);
  CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  CHECK_EQ(aclrtHostGetDevicePointer(p + 8, &device, 0), 0);
  CHECK_EQ(device, p + 8);
  CHECK_FAILS(aclrtHostGetDevicePointer(p, &device, 1), 100000, "flag must be 0, but got 1");
  CHECK_EQ(aclrtHostGetDevicePointer(nullptr, &device, 0), 100000);
  CHECK_EQ(aclrtHostGetDevicePointer(p, nullptr, 0), 100000);
  CHECK_FAILS(aclrtHostGetDevicePointer(other.data(), &device, 0), 507911,
              "is not registered with");
  CHECK_FAILS(aclrtHostRegister(p + 1, 10, ACL_HOST_REGISTER_MAPPED, &device), 507910,
              "are already registered; call aclrtHostUnregister");
  CHECK_EQ(aclrtHostRegisterV2(p + 4000, 200, ACL_HOST_REG_PINNED), 507910);
  CHECK_EQ(aclrtHostRegisterV2(p + 4096, 4096, ACL_HOST_REG_PINNED), 0);
  CHECK_EQ(aclrtHostGetDevicePointer(p + 4096, &device, 0), 507911);  // not mapped

  // A copy of registered memory does not wait: the stream has other work to do first.
  aclrtStream stream = nullptr;
  aclrtNotify notify = nullptr;
  void* q = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
  CHECK_EQ(aclrtMalloc(&q, 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 0), 0);
  p[5] = 9;
  CHECK_EQ(aclrtMemcpyAsync(q, 64, p, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream), 0);
  CHECK_EQ(aclrtRecordNotify(notify, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(static_cast<char*>(q)[5], 9);
  CHECK_EQ(aclrtDestroyNotify(notify), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtFree(q), 0);

  CHECK_EQ(aclrtHostUnregister(p), 0);
  CHECK_FAILS(aclrtHostUnregister(p), 507911, "is not the start of a registered range");
  CHECK_EQ(aclrtHostUnregister(p + 4096), 0);
  CHECK_EQ(aclrtHostUnregister(nullptr), 100000);
  CHECK_EQ(aclrtHostRegister(nullptr, 10, ACL_HOST_REGISTER_MAPPED, &device), 100000);
  CHECK_EQ(aclrtHostRegister(p, 0, ACL_HOST_REGISTER_MAPPED, &device), 100000);
  CHECK_EQ(aclrtHostRegister(p, UINT64_MAX, ACL_HOST_REGISTER_MAPPED, &device), 100000);
  CHECK_EQ(aclrtHostRegister(p, 10, ACL_HOST_REGISTER_MAPPED, nullptr), 100000);
  CHECK_FAILS(aclrtHostRegister(p, 10, ACL_HOST_REGISTER_READONLY, &device), 207000, "but got 8");
  CHECK_EQ(aclrtHostRegisterV2(p, 10, 0), 100000);
  CHECK_FAILS(aclrtHostRegisterV2(p, 10, ACL_HOST_REG_IOMEMORY), 207000, "flag must be made of");
  CHECK_EQ(aclrtHostRegisterV2(nullptr, 10, ACL_HOST_REG_PINNED), 100000);
}

void allocation() {
  void *host = nullptr, *managed = nullptr;
  CHECK_EQ(aclrtMallocHostWithCfg(&host, 64, nullptr), 0);
  std::memset(host, 1, 64);
  CHECK_EQ(aclrtFreeHostWithDevSync(host), 0);
  CHECK_EQ(aclrtFreeHostWithDevSync(host), 107000);
  CHECK_EQ(aclrtFreeHostWithDevSync(nullptr), 100000);
  CHECK_EQ(aclrtMallocHostWithCfg(nullptr, 64, nullptr), 100000);
  CHECK_EQ(aclrtMallocHostWithCfg(&host, 0, nullptr), 100000);
  aclrtMallocAttribute wrong = {static_cast<aclrtMallocAttrType>(9), {}};
  aclrtMallocConfig config = {&wrong, 1};
  CHECK_EQ(aclrtMallocHostWithCfg(&host, 64, &config), 100000);

  aclrtPtrAttributes attributes;
  CHECK_EQ(aclrtMemAllocManaged(&managed, 1000, ACL_RT_MEM_ATTACH_GLOBAL), 0);
  CHECK_EQ(aclrtPointerGetAttributes(managed, &attributes), 0);
  CHECK_EQ(attributes.location.type, ACL_MEM_LOCATION_TYPE_MANAGED);
  std::memset(managed, 3, 1000);
  for (const auto kind : {ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST})
    CHECK_EQ(aclrtMemcpy(managed, 10, static_cast<char*>(managed) + 500, 10, kind), 0);
  CHECK_EQ(aclrtFreeHost(managed), 107000);
  CHECK_EQ(aclrtFree(managed), 0);
  CHECK_EQ(aclrtFree(managed), 107000);
  CHECK_FAILS(aclrtMemAllocManaged(&managed, 10, 0), 100000,
              "flag must be ACL_RT_MEM_ATTACH_GLOBAL");
  CHECK_EQ(aclrtMemAllocManaged(&managed, 0, 1), 100000);
  CHECK_EQ(aclrtMemAllocManaged(nullptr, 10, 1), 100000);
}

void usage() {
  aclrtMemUsageInfo before, after;
  static_assert(sizeof before == 112);
  size_t count = 0;
  void* p = nullptr;
  CHECK_EQ(aclrtGetMemUsageInfo(0, &before, 1, &count), 0);
  CHECK_EQ(count, size_t{1});
  CHECK_EQ(std::string(before.name), "APP");
  CHECK_EQ(aclrtMalloc(&p, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtGetMemUsageInfo(0, &after, 1, &count), 0);
  CHECK(after.curMemSize >= before.curMemSize + (1 << 20));
  CHECK_EQ(aclrtFree(p), 0);
  CHECK_EQ(aclrtGetMemUsageInfo(0, &after, 1, &count), 0);
  CHECK_EQ(after.curMemSize, before.curMemSize);
  CHECK(after.memPeakSize >= before.curMemSize + (1 << 20));
  CHECK_EQ(aclrtGetMemUsageInfo(0, nullptr, 1, &count), 100000);
  CHECK_EQ(aclrtGetMemUsageInfo(0, &after, 0, &count), 100000);
  CHECK_EQ(aclrtGetMemUsageInfo(0, &after, 1, nullptr), 100000);
  CHECK_EQ(aclrtGetMemUsageInfo(7, &after, 1, &count), 107001);
}

void access() {
  constexpr size_t kSize = size_t{2} << 20;
  aclrtPhysicalMemProp prop = {};
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtDrvMemHandle handle = nullptr;
  void* p = nullptr;
  aclrtMemAccessDesc desc = {ACL_RT_MEM_ACCESS_FLAGS_READWRITE, prop.location, {}};
  static_assert(sizeof desc == 24);
  CHECK_EQ(aclrtMallocPhysical(&handle, kSize, &prop, 0), 0);
  CHECK_EQ(aclrtReserveMemAddress(&p, kSize, 0, nullptr, 1), 0);
  CHECK_FAILS(aclrtMemSetAccess(p, kSize, &desc, 1), 107000, "the bytes mapped at");
  CHECK_EQ(aclrtMapMem(p, kSize, 0, handle, 0), 0);
  CHECK_EQ(aclrtMemSetAccess(p, kSize, &desc, 1), 0);
  CHECK_EQ(aclrtMemSetAccess(p, kSize + 1, &desc, 1), 107000);
  CHECK_EQ(aclrtMemSetAccess(nullptr, kSize, &desc, 1), 100000);
  CHECK_EQ(aclrtMemSetAccess(p, kSize, nullptr, 1), 100000);
  CHECK_EQ(aclrtMemSetAccess(p, kSize, &desc, 0), 100000);
  desc.flags = ACL_RT_MEM_ACCESS_FLAGS_READ;
  CHECK_FAILS(aclrtMemSetAccess(p, kSize, &desc, 1), 107000, "flags of desc 0 must be 3");
  CHECK_EQ(aclrtUnmapMem(p), 0);
  CHECK_EQ(aclrtReleaseMemAddress(p), 0);
  CHECK_EQ(aclrtFreePhysical(handle), 0);
}

}  // namespace

int main() {
  void* device = nullptr;
  char byte = 0;
  CHECK_EQ(aclrtHostRegister(&byte, 1, ACL_HOST_REGISTER_MAPPED, &device), 107002);
  CHECK_EQ(aclrtHostRegisterV2(&byte, 1, ACL_HOST_REG_PINNED), 107002);
  CHECK_EQ(aclrtSetDevice(0), 0);
  registration();
  allocation();
  usage();
  access();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}
