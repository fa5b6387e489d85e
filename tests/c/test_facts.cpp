// SPDX-License-Identifier: Apache-2.0
// What the runtime says about devices and versions; limits of cores; failures and their callbacks.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "check.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

void versions() {
  char name[] = "runtime", dashed[] = "ops-nn", lined[] = "ops_nn", driver[] = "driver", text[128];
  int32_t number = 0, other = 0;
  CHECK_EQ(aclsysGetVersionStr(name, text), 0);
  CHECK_EQ(std::string(text), "8.5.0");
  CHECK_EQ(aclsysGetVersionNum(dashed, &number), 0);
  CHECK_EQ(aclsysGetVersionNum(lined, &other), 0);
  CHECK(number == other && number > 0);
  CHECK_FAILS(aclsysGetVersionStr(driver, text), 100003, "package \"driver\" is not installed");
  CHECK_EQ(aclsysGetVersionNum(driver, &number), 100003);
  CHECK_EQ(aclsysGetVersionStr(nullptr, text), 100000);
  CHECK_EQ(aclsysGetVersionStr(name, nullptr), 100000);
  CHECK_EQ(aclsysGetVersionNum(nullptr, &number), 100000);
  CHECK_EQ(aclsysGetVersionNum(name, nullptr), 100000);
  aclCANNPackageVersion version;
  CHECK_EQ(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, &version), 0);
  CHECK_EQ(std::string(version.version), "8.5.0");
  CHECK_EQ(std::string(version.majorVersion) + version.minorVersion + version.releaseVersion,
           "850");
  CHECK_FAILS(aclsysGetCANNVersion(ACL_PKG_NAME_DRIVER, &version), 100000, "other than the driver");
  CHECK_EQ(aclsysGetCANNVersion(static_cast<aclCANNPackageName>(-1), &version), 100000);
  CHECK_EQ(aclsysGetCANNVersion(ACL_PKG_NAME_CANN, nullptr), 100000);
}

void facts() {
  int64_t value = -1;
  const auto info = [&](int attribute) {
    return aclrtGetDeviceInfo(0, static_cast<aclrtDevAttr>(attribute), &value);
  };
  for (const int attribute : {1, 101, 102, 201, 301}) {
    CHECK_EQ(info(attribute), 0);
    CHECK(value > 0);
  }
  CHECK_EQ(info(ACL_DEV_ATTR_NPU_ARCH), 0);
  CHECK_EQ(value, 2201);
  for (const int attribute : {202, 212, 302, 401, 408, 409, 501}) CHECK_EQ(info(attribute), 0);
  CHECK_FAILS(info(100), 107000, "attr must be one of aclrtDevAttr, but got 100");
  CHECK_EQ(aclrtGetDeviceInfo(99, ACL_DEV_ATTR_NPU_ARCH, &value), 107001);
  CHECK_EQ(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_NPU_ARCH, nullptr), 100000);
  CHECK_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_AI_CORE_NUM, &value), 0);
  CHECK(value > 0);
  CHECK_EQ(aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &value), 100000);

  int32_t flag = 7;
  CHECK_EQ(aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &flag), 0);
  CHECK_EQ(flag, ACL_DEV_FEATURE_NOT_SUPPORT);
  CHECK_EQ(aclrtGetDeviceCapability(0, static_cast<aclrtDevFeatureType>(2), &flag), 100000);
  CHECK_EQ(aclrtGetDeviceCapability(9, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &flag), 107001);
  CHECK_EQ(aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, nullptr), 100000);

  const aclCannAttr* list = nullptr;
  size_t count = 0;
  CHECK_EQ(aclGetCannAttributeList(&list, &count), 0);
  CHECK(count == 2 && list[0] == ACL_CANN_ATTR_INF_NAN && list[1] == ACL_CANN_ATTR_BF16);
  CHECK_EQ(aclGetCannAttributeList(nullptr, &count), 100000);
  CHECK_EQ(aclGetCannAttributeList(&list, nullptr), 100000);
  CHECK_EQ(aclGetCannAttribute(ACL_CANN_ATTR_JIT_COMPILE, &flag), 0);
  CHECK_EQ(flag, 0);
  CHECK_EQ(aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &flag), 100000);

  CHECK_EQ(aclrtCheckArchCompatibility(aclrtGetSocName(), &flag), 0);
  CHECK_EQ(flag, 1);
  CHECK_EQ(aclrtCheckArchCompatibility("Ascend310P3", &flag), 0);
  CHECK_EQ(flag, 0);
  CHECK_EQ(aclrtCheckArchCompatibility(nullptr, &flag), 100000);
  CHECK_EQ(aclrtCheckArchCompatibility("x", nullptr), 100000);

  aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
  CHECK_EQ(aclrtQueryDeviceStatus(0, &status), 0);
  CHECK_EQ(status, ACL_RT_DEVICE_STATUS_NORMAL);
  CHECK_EQ(aclrtQueryDeviceStatus(1, &status), 107001);
  CHECK_EQ(aclrtQueryDeviceStatus(0, nullptr), 100000);
  aclrtUtilizationInfo use = {};
  CHECK_EQ(aclrtGetDeviceUtilizationRate(0, &use), 0);
  CHECK(use.cubeUtilization >= 0 && use.cubeUtilization <= 100 && use.memoryUtilization == -1);
  use.utilizationExtend = &use;
  CHECK_FAILS(aclrtGetDeviceUtilizationRate(0, &use), 100000, "utilizationExtend must be NULL");
  CHECK_EQ(aclrtGetDeviceUtilizationRate(0, nullptr), 100000);
  CHECK_EQ(aclrtGetDeviceUtilizationRate(-1, &use), 107001);

  int32_t least = -1, greatest = -1, id = -1;
  CHECK_EQ(aclrtDeviceGetStreamPriorityRange(&least, &greatest), 0);
  CHECK(least == 7 && greatest == 0);
  CHECK_EQ(aclrtDeviceGetStreamPriorityRange(nullptr, &greatest), 100000);
  CHECK_EQ(aclrtDeviceGetStreamPriorityRange(&least, nullptr), 100000);
  CHECK_EQ(aclrtGetLogicDevIdByUserDevId(0, &id), 0);
  CHECK_EQ(id, 0);
  CHECK_EQ(aclrtGetLogicDevIdByUserDevId(5, &id), 107001);
  CHECK_EQ(aclrtGetLogicDevIdByUserDevId(0, nullptr), 100000);
  aclrtUuid uuid;
  CHECK_EQ(aclrtDeviceGetUuid(0, &uuid), 0);
  CHECK(std::memcmp(uuid.bytes, "openaclnn CPU 00", 16) == 0);
  CHECK_EQ(aclrtDeviceGetUuid(0, nullptr), 100000);
  CHECK_EQ(aclrtDeviceGetBareTgid(&id), 0);
  CHECK(id > 0);
}

void core_limits() {
  constexpr auto kVector = ACL_RT_DEV_RES_VECTOR_CORE, kCube = ACL_RT_DEV_RES_CUBE_CORE;
  constexpr auto kWrong = static_cast<aclrtDevResLimitType>(2);
  uint32_t all = 0, value = 0;
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtGetDeviceResLimit(0, kVector, &all), 0);
  CHECK(all >= 1);
  CHECK_EQ(aclrtSetDeviceResLimit(0, kVector, 1), 0);
  CHECK_EQ(aclrtGetDeviceResLimit(0, kVector, &value), 0);
  CHECK_EQ(value, 1u);
  CHECK_EQ(aclrtGetDeviceResLimit(0, kCube, &value), 0);
  CHECK_EQ(value, all);
  CHECK_EQ(aclrtGetStreamResLimit(stream, kVector, &value), 0);  // the device's
  CHECK_EQ(value, 1u);
  CHECK_EQ(aclrtResetDeviceResLimit(0), 0);
  CHECK_EQ(aclrtSetStreamResLimit(stream, kVector, 1), 0);
  CHECK_EQ(aclrtGetResInCurrentThread(kVector, &value), 0);
  CHECK_EQ(value, all);
  CHECK_EQ(aclrtUseStreamResInCurrentThread(stream), 0);
  CHECK_EQ(aclrtGetResInCurrentThread(kVector, &value), 0);
  CHECK_EQ(value, 1u);
  CHECK_FAILS(aclrtUnuseStreamResInCurrentThread(nullptr), 107000, "does not use the limits");
  CHECK_EQ(aclrtUnuseStreamResInCurrentThread(stream), 0);
  CHECK_EQ(aclrtGetResInCurrentThread(kVector, &value), 0);
  CHECK_EQ(value, all);
  CHECK_EQ(aclrtUseStreamResInCurrentThread(stream), 0);
  CHECK_EQ(aclrtResetStreamResLimit(stream), 0);
  CHECK_EQ(aclrtGetStreamResLimit(stream, kVector, &value), 0);
  CHECK_EQ(value, all);
  CHECK_FAILS(aclrtSetDeviceResLimit(0, kVector, 0), 107000, "value must be in [1, ");
  CHECK_EQ(aclrtSetDeviceResLimit(0, kVector, all + 1), 107000);
  CHECK_FAILS(aclrtSetDeviceResLimit(0, kWrong, 1), 107000, "type must be 0 (cube cores) or 1");
  CHECK_EQ(aclrtSetDeviceResLimit(8, kVector, 1), 107001);
  CHECK_EQ(aclrtGetDeviceResLimit(0, kVector, nullptr), 100000);
  CHECK_EQ(aclrtResetDeviceResLimit(-1), 107001);
  CHECK_EQ(aclrtSetStreamResLimit(stream, kWrong, 1), 107000);
  CHECK_EQ(aclrtSetStreamResLimit(foreign, kVector, 1), 107017);
  CHECK_EQ(aclrtGetStreamResLimit(foreign, kVector, &value), 107017);
  CHECK_EQ(aclrtGetStreamResLimit(stream, kVector, nullptr), 100000);
  CHECK_EQ(aclrtResetStreamResLimit(foreign), 107017);
  CHECK_EQ(aclrtUseStreamResInCurrentThread(foreign), 107017);
  CHECK_EQ(aclrtGetResInCurrentThread(kWrong, &value), 107000);
  CHECK_EQ(aclrtGetResInCurrentThread(kVector, nullptr), 100000);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtGetResInCurrentThread(kVector, &value), 0);  // the stream is gone
  CHECK_EQ(value, all);
}

void faults() {
  aclrtErrorInfo error;
  std::memset(&error, 0xff, sizeof error);
  static_assert(sizeof error == 2576);
  CHECK_EQ(aclrtGetErrorVerbose(0, &error), 0);
  CHECK(error.errorType == ACL_RT_NO_ERROR && error.tryRepair == 0 && error.hasDetail == 0);
  CHECK_EQ(aclrtRepairError(0, &error), 0);
  error.errorType = ACL_RT_ERROR_L2;
  CHECK_FAILS(aclrtRepairError(0, &error), 207000, "errorType 2 cannot be repaired");
  CHECK_EQ(aclrtGetErrorVerbose(0, nullptr), 100000);
  CHECK_EQ(aclrtGetErrorVerbose(3, &error), 107001);
  CHECK_EQ(aclrtRepairError(0, nullptr), 100000);
  CHECK_EQ(aclrtRepairError(3, &error), 107001);
  aclrtMemUceInfo places[2];
  static_assert(sizeof places == 256);
  size_t found = 9;
  CHECK_EQ(aclrtGetMemUceInfo(0, places, 2, &found), 0);
  CHECK_EQ(found, size_t{0});
  CHECK_EQ(aclrtGetMemUceInfo(0, nullptr, 2, &found), 100000);
  CHECK_EQ(aclrtGetMemUceInfo(0, places, 2, nullptr), 100000);
  CHECK_EQ(aclrtGetMemUceInfo(4, places, 2, &found), 107001);
  CHECK_EQ(aclrtMemUceRepair(0, places, 2), 207000);
  CHECK_EQ(aclrtMemUceRepair(0, places, 0), 100000);
  CHECK_EQ(aclrtMemUceRepair(0, places, 129), 100000);
  CHECK_EQ(aclrtMemUceRepair(0, nullptr, 2), 100000);
}

struct Failed {
  std::atomic<int> single{0}, listed{0};
  uint32_t task = 0, stream = 0, thread = 0, device = 9, code = 0;
  aclrtExceptionInfo* info = nullptr;
} failed;

void single(aclrtExceptionInfo* info) {
  ++failed.single;
  failed.task = aclrtGetTaskIdFromExceptionInfo(info);
  failed.stream = aclrtGetStreamIdFromExceptionInfo(info);
  failed.thread = aclrtGetThreadIdFromExceptionInfo(info);
  failed.device = aclrtGetDeviceIdFromExceptionInfo(info);
  failed.code = aclrtGetErrorCodeFromExceptionInfo(info);
  void* arguments = nullptr;
  uint32_t length = 0;
  aclrtFuncHandle function = nullptr;
  CHECK_EQ(aclrtGetArgsFromExceptionInfo(info, &arguments, &length), -1);
  CHECK_EQ(aclrtGetFuncHandleFromExceptionInfo(info, &function), -1);
  CHECK_EQ(aclrtGetTaskIdFromExceptionInfo(reinterpret_cast<aclrtExceptionInfo*>(8)), 0xffffffffu);
  failed.info = info;
}
void listed(aclrtExceptionInfo*) { ++failed.listed; }

void exceptions() {
  uint32_t last = 0;
  std::thread([&] { CHECK_EQ(aclrtGetThreadLastTaskId(&last), 107000); }).join();
  CHECK_EQ(aclrtGetThreadLastTaskId(nullptr), 100000);
  CHECK_EQ(aclrtSetExceptionInfoCallback(single), 0);
  CHECK_EQ(aclrtExceptionInfoCallbackRegister(listed), 0);
  CHECK_EQ(aclrtExceptionInfoCallbackRegister(listed), 0);  // still once
  CHECK_EQ(aclrtExceptionInfoCallbackRegister(nullptr), 107000);
  CHECK_EQ(aclrtExceptionInfoCallbackUnregister(nullptr), 107000);
  aclrtStream stream = nullptr;
  aclrtNotify notify = nullptr;
  int32_t id = -1;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtStreamGetId(stream, &id), 0);
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
  CHECK_EQ(aclrtRecordNotify(notify, stream), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 1), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 1), 0);  // the one that fails
  CHECK_EQ(aclrtGetThreadLastTaskId(&last), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 107020);
  CHECK_EQ(failed.single, 1);
  CHECK_EQ(failed.listed, 1);
  CHECK_EQ(failed.task, last);
  CHECK_EQ(failed.stream, static_cast<uint32_t>(id));
  CHECK(failed.thread != 0 && failed.thread != 0xffffffff);
  CHECK_EQ(failed.device, 0u);
  CHECK_EQ(failed.code, 107020u);
  CHECK_EQ(aclrtSetExceptionInfoCallback(nullptr), 0);
  CHECK_EQ(aclrtExceptionInfoCallbackUnregister(listed), 0);
  CHECK_EQ(aclrtExceptionInfoCallbackUnregister(listed), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 1), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 107020);
  CHECK_EQ(failed.single + failed.listed, 2);
  CHECK_EQ(aclrtGetTaskIdFromExceptionInfo(failed.info), 0xffffffffu);  // after the callback
  CHECK_EQ(aclrtGetTaskIdFromExceptionInfo(nullptr), 0xffffffffu);
  CHECK_EQ(aclrtGetStreamIdFromExceptionInfo(nullptr), 0xffffffffu);
  CHECK_EQ(aclrtGetThreadIdFromExceptionInfo(nullptr), 0xffffffffu);
  CHECK_EQ(aclrtGetDeviceIdFromExceptionInfo(nullptr), 0xffffffffu);
  CHECK_EQ(aclrtGetErrorCodeFromExceptionInfo(nullptr), 0xffffffffu);
  CHECK_EQ(aclrtDestroyNotify(notify), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

int32_t note_abort(int32_t device, aclrtDeviceTaskAbortStage stage, uint32_t timeout, void* args) {
  *static_cast<std::string*>(args) +=
      std::to_string(device) + std::to_string(stage) + std::to_string(timeout) + " ";
  return 0;
}

void device_abort() {
  std::string stages;
  aclrtStream stream = nullptr;
  aclrtNotify notify = nullptr;
  CHECK_EQ(aclrtSetDeviceTaskAbortCallback("test", note_abort, &stages), 0);
  CHECK_EQ(aclrtSetDeviceTaskAbortCallback("test", note_abort, &stages), 107000);
  CHECK_EQ(aclrtSetDeviceTaskAbortCallback(nullptr, note_abort, &stages), 100000);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 0), 0);
  CHECK_EQ(aclrtDeviceTaskAbort(0, 5), 0);
  CHECK_EQ(stages, "005 015 ");
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(aclrtDeviceTaskAbort(2, 0), 107001);
  CHECK_FAILS(aclrtDeviceTaskAbort(0, 3'000'000), 107000, "timeout must be at most 2160000 ms");
  CHECK_EQ(aclrtSetDeviceTaskAbortCallback("test", nullptr, nullptr), 0);
  CHECK_EQ(aclrtDestroyNotify(notify), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

}  // namespace

int main() {
  versions();
  CHECK_EQ(aclrtSetDevice(0), 0);
  facts();
  core_limits();
  faults();
  exceptions();
  device_abort();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}
