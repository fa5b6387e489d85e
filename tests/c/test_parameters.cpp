// SPDX-License-Identifier: Apache-2.0
// Parameters of process and context, the last error of a thread, and what is known of addresses.
#include <thread>

#include "aclnn/aclnn_base.h"
#include "check.h"

namespace {

constexpr auto option(int value) { return static_cast<aclSysParamOpt>(value); }

void of_process() {
  int64_t value = -1;
  for (int opt = 0; opt < 4; ++opt) {
    CHECK_EQ(aclrtGetSysParamOpt(option(opt), &value), 0);
    CHECK_EQ(value, 0);
    CHECK_EQ(aclrtSetSysParamOpt(option(opt), 1), 0);
    CHECK_EQ(aclrtGetSysParamOpt(option(opt), &value), 0);
    CHECK_EQ(value, 1);
    CHECK_EQ(aclrtSetSysParamOpt(option(opt), 0), 0);
  }
  CHECK_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 3), 0);
  CHECK_FAILS(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 4), 107000,
              "aclrtSetSysParamOpt: value of opt 0 must be in [0, 3], but got 4");
  CHECK_EQ(aclrtSetSysParamOpt(ACL_OPT_ENABLE_DEBUG_KERNEL, 2), 107000);
  CHECK_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, -1), 107000);
  CHECK_FAILS(aclrtSetSysParamOpt(option(4), 0), 100000, "opt must be in [0, 4), but got 4");
  CHECK_EQ(aclrtSetSysParamOpt(option(-1), 0), 100000);
  CHECK_EQ(aclrtGetSysParamOpt(option(4), &value), 100000);
  CHECK_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), 100000);
  std::thread([&] { CHECK_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), 0); }).join();
  CHECK_EQ(value, 3);
}

void of_context() {
  int64_t value = -1;
  CHECK_FAILS(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), 107002,
              "aclrtCtxSetSysParamOpt: no device is set");
  CHECK_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), 107002);
  CHECK_EQ(aclrtSetDevice(0), 0);
  aclrtContext standard, own;
  CHECK_EQ(aclrtGetCurrentContext(&standard), 0);
  CHECK_FAILS(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), 107021,
              "opt 0 was never set for this context");
  CHECK_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 2), 0);
  CHECK_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, 1), 0);
  CHECK_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), 0);
  CHECK_EQ(value, 2);
  CHECK_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_ENABLE_KERNEL_EARLY_START, 1), 100000);
  CHECK_EQ(aclrtCtxSetSysParamOpt(option(-1), 1), 100000);
  CHECK_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, 2), 107000);
  CHECK_EQ(aclrtCtxGetSysParamOpt(option(3), &value), 100000);
  CHECK_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), 100000);
  CHECK_EQ(aclrtCreateContext(&own, 0), 0);
  CHECK_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), 107021);
  CHECK_EQ(aclrtDestroyContext(own), 0);
  CHECK_EQ(aclrtSetCurrentContext(standard), 0);
  CHECK_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), 0);
  CHECK_EQ(value, 2);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

void last_error() {
  (void)aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
  CHECK_EQ(aclrtFree(nullptr), 100000);  // seen before the runtime is asked
  CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
  CHECK_EQ(aclrtSetDevice(99), 107001);
  int local;
  CHECK_EQ(aclrtFree(&local), 107000);
  CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107000);
  std::thread([] { CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0); }).join();
  CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107000);
  CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 0);
  CHECK_FAILS(aclrtGetLastError(static_cast<aclrtLastErrLevel>(1)), 100000,
              "aclrtGetLastError: level must be 0, the thread, but got 1");
  CHECK_EQ(aclrtPeekAtLastError(static_cast<aclrtLastErrLevel>(-1)), 100000);
}

void addresses() {
  void *device, *host;
  char local;
  aclrtPtrAttributes found;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtMalloc(&device, 100, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMallocHost(&host, 100), 0);
  CHECK_EQ(aclrtPointerGetAttributes(nullptr, &found), 100000);
  CHECK_FAILS(aclrtPointerGetAttributes(&local, nullptr), 100000, "attributes must not be NULL");
  CHECK_EQ(aclrtPointerGetAttributes(static_cast<char*>(device) + 50, &found), 0);
  CHECK_EQ(found.location.type, ACL_MEM_LOCATION_TYPE_DEVICE);
  CHECK_EQ(found.location.id, 0u);
  CHECK(found.pageSize >= 4096 && found.reserved[0] == 0);
  CHECK_EQ(aclrtPointerGetAttributes(host, &found), 0);
  CHECK_EQ(found.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  CHECK_EQ(aclrtPointerGetAttributes(&local, &found), 0);
  CHECK_EQ(found.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  CHECK_EQ(found.pageSize, 0u);
  CHECK_EQ(aclrtFreeWithDevSync(device), 0);
  CHECK_EQ(aclrtPointerGetAttributes(device, &found), 0);
  CHECK_EQ(found.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  CHECK_EQ(aclrtFreeWithDevSync(device), 107000);
  CHECK_EQ(aclrtFreeWithDevSync(host), 107000);
  CHECK_FAILS(aclrtFreeWithDevSync(nullptr), 100000, "devPtr must not be NULL");
  CHECK_EQ(aclrtFreeHost(host), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_FAILS(aclrtFreeWithDevSync(&local), 107002, "aclrtFreeWithDevSync: no device is set");
}

void configured_memory() {
  void* p = nullptr;
  aclrtMallocAttribute attributes[2] = {};
  attributes[0].attr = ACL_RT_MEM_ATTR_MODULE_ID;
  attributes[0].value.moduleId = 7;
  attributes[1].attr = ACL_RT_MEM_ATTR_DEVICE_ID;
  aclrtMallocConfig none = {nullptr, 0}, broken = {nullptr, 1}, two = {attributes, 2};
  const auto make = [&p](aclrtMallocConfig* config) {
    return aclrtMallocWithCfg(
        &p, 100, static_cast<aclrtMemMallocPolicy>(ACL_MEM_MALLOC_HUGE_FIRST | 4096), config);
  };
  CHECK_EQ(make(nullptr), 107002);
  CHECK_EQ(make(&two), 107002);
  CHECK_EQ(aclrtSetDevice(0), 0);
  for (aclrtMallocConfig* config : {static_cast<aclrtMallocConfig*>(nullptr), &none, &two}) {
    CHECK_EQ(make(config), 0);
    CHECK_EQ(aclrtFree(p), 0);
  }
  CHECK_FAILS(make(&broken), 100000, "aclrtMallocWithCfg: cfg->attrs must not be NULL");
  broken.attrs = attributes;
  broken.numAttrs = SIZE_MAX;
  CHECK_FAILS(make(&broken), 100000, "cfg->numAttrs must be at most 64, but got");
  CHECK_EQ(aclrtMallocWithCfg(nullptr, 1, ACL_MEM_MALLOC_HUGE_FIRST, nullptr), 100000);
  CHECK_EQ(aclrtMallocWithCfg(&p, 0, ACL_MEM_MALLOC_HUGE_FIRST, nullptr), 100000);
  attributes[1].value.deviceId = 3;
  CHECK_FAILS(make(&two), 107001, "cfg->attrs[1] must name the current device 0, but names 3");
  attributes[0].attr = static_cast<aclrtMallocAttrType>(4);
  CHECK_FAILS(make(&two), 100000, "cfg->attrs[0].attr must be in [0, 3], but got 4");
  CHECK_EQ(aclrtResetDevice(0), 0);
}

}  // namespace

int main() {
  of_process();
  of_context();
  last_error();
  addresses();
  configured_memory();
  return check_result();
}
