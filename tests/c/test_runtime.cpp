// SPDX-License-Identifier: Apache-2.0
// Devices, contexts, stream handles and messages: every code and sentence.
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "aclnn/aclnn_base.h"
#include "check.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

void messages() {
  aclGetRecentErrMsg();
  CHECK_EQ(aclGetRecentErrMsg(), std::string());
  CHECK_EQ(aclrtFree(nullptr), 100000);
  CHECK_EQ(aclrtSetDevice(-1), 107001);
  const std::string text = aclGetRecentErrMsg();
  const std::string head = "[PID:" + std::to_string(getpid()) + "] 20";
  CHECK_EQ(text.substr(0, head.size()), head);
  const size_t newest = text.find("Invalid_Argument(EE1001): aclrtSetDevice: deviceId must be in");
  const size_t older = text.find("Invalid_Argument(EH0001): aclrtFree: devPtr must not be NULL");
  CHECK(newest != std::string::npos && older != std::string::npos && newest < older);
  CHECK_EQ(aclGetRecentErrMsg(), std::string());
  CHECK_EQ(aclrtFree(nullptr), 100000);
  CHECK_EQ(aclrtSynchronizeStream(foreign), 107017);  // puts its name before an inner sentence
  const std::string both = aclGetRecentErrMsg();
  CHECK(both.find("(EE1001): aclrtSynchronizeStream: stream 0x") != std::string::npos);
  CHECK(both.find("(EH0001): aclrtFree: devPtr must not be NULL") != std::string::npos);
  CHECK_EQ(std::count(both.begin(), both.end(), '\n'), 2);
  for (int i = 0; i < 1000; ++i) (void)aclrtFree(nullptr);
  CHECK(strlen(aclGetRecentErrMsg()) < 5000);
  std::thread([] { CHECK_EQ(aclGetRecentErrMsg(), std::string()); }).join();
}

void without_device() {
  void* p = nullptr;
  size_t n;
  int32_t id;
  aclrtStream stream;
  aclrtContext context;
  char a[2], b[2];
  CHECK_FAILS(aclrtMalloc(&p, 1, ACL_MEM_MALLOC_NORMAL_ONLY), 107002,
              "aclrtMalloc: no device is set for this thread; call aclrtSetDevice first");
  CHECK_EQ(aclrtMallocHost(&p, 1), 107002);
  CHECK_EQ(aclrtMemcpy(a, 2, b, 2, ACL_MEMCPY_HOST_TO_DEVICE), 107002);
  CHECK_EQ(aclrtMemset(a, 2, 0, 2), 107002);
  CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &n, &n), 107002);
  CHECK_EQ(aclrtGetDevice(&id), 107002);
  CHECK_EQ(aclrtGetCurrentContext(&context), 107002);
  CHECK_EQ(aclrtCreateStream(&stream), 107002);
  CHECK_EQ(aclrtSynchronizeDevice(), 107002);
  CHECK_FAILS(
      aclrtSynchronizeStream(nullptr), 107002,
      "aclrtSynchronizeStream: no device is set for this thread, so it has no default stream");
}

void devices() {
  int32_t id = 99;
  uint32_t count = 0;
  aclrtRunMode mode = ACL_DEVICE;
  int32_t major, minor, patch;
  CHECK_EQ(aclrtGetDeviceCount(&count), 0);
  CHECK_EQ(count, 1u);
  CHECK_EQ(aclrtGetDeviceCount(nullptr), 100000);
  CHECK_EQ(aclrtGetRunMode(&mode), 0);
  CHECK_EQ(mode, ACL_HOST);
  CHECK_EQ(aclrtGetRunMode(nullptr), 100000);
  CHECK_EQ(aclrtGetVersion(&major, &minor, &patch), 0);
  CHECK(major == 1 && minor == 17 && patch == 0);
  CHECK_EQ(aclrtGetVersion(&major, nullptr, &patch), 100000);
  CHECK_FAILS(aclrtSetDevice(1), 107001,
              "aclrtSetDevice: deviceId must be in [0, 1), but got 1; OPENACLNN_DEVICES=2 makes 2");
  CHECK_EQ(aclrtResetDevice(1), 107001);
  CHECK_FAILS(aclrtResetDevice(0), 107000, "device 0 was never set");
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtGetDevice(&id), 0);
  CHECK_EQ(id, 0);
  CHECK_EQ(aclrtGetDevice(nullptr), 100000);
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclrtGetDevice(&id), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclrtGetDevice(&id), 107002);
  CHECK_EQ(aclrtResetDevice(0), 107000);
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtResetDeviceForce(0), 0);
  CHECK_FAILS(aclrtResetDeviceForce(0), 107000, "device 0 was reset already");
}

void contexts() {
  aclrtContext standard, own, now;
  aclrtStream stream;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtGetCurrentContext(&standard), 0);
  CHECK_EQ(aclrtGetCurrentContext(nullptr), 100000);
  CHECK_FAILS(aclrtDestroyContext(standard), 107000, "this is the default context of a device");
  CHECK_EQ(aclrtCreateContext(nullptr, 0), 100000);
  CHECK_EQ(aclrtCreateContext(&own, 7), 107001);
  CHECK_EQ(aclrtCreateContext(&own, 0), 0);
  CHECK_EQ(aclrtGetCurrentContext(&now), 0);
  CHECK_EQ(now, own);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtSetCurrentContext(standard), 0);
  CHECK_FAILS(aclrtDestroyStream(stream), 107003, "belongs to another context");
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(aclrtSetCurrentContext(own), 0);
  CHECK_EQ(aclrtDestroyContext(own), 0);
  CHECK_FAILS(aclrtDestroyContext(own), 107017, "was destroyed or never created");
  CHECK_EQ(aclrtDestroyContext(foreign), 107017);
  CHECK_EQ(aclrtDestroyContext(nullptr), 100000);
  CHECK_EQ(aclrtSetCurrentContext(own), 107017);
  CHECK_EQ(aclrtSetCurrentContext(nullptr), 100000);
  CHECK_EQ(aclrtGetCurrentContext(&now), 107002);
  char bytes[4];
  CHECK_EQ(aclrtSetCurrentContext(standard), 0);
  CHECK_FAILS(aclrtMemsetAsync(bytes, 4, 0, 4, stream), 107003,
              "aclrtMemsetAsync: the context of stream 0x");
  CHECK_EQ(aclrtDestroyStream(stream), 0);  // an orphan, from any context
  CHECK_EQ(aclrtResetDevice(0), 0);
}

void stream_handles() {
  aclrtStream a, b;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(nullptr), 100000);
  CHECK_EQ(aclrtCreateStreamWithConfig(nullptr, 0, 0), 100000);
  CHECK_EQ(aclrtCreateStream(&a), 0);
  CHECK_EQ(aclrtCreateStreamWithConfig(&b, 8, 0xFFFFFFFF), 0);
  CHECK_EQ(aclrtSynchronizeStream(a), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK_EQ(aclrtDestroyStream(a), 0);
  CHECK_FAILS(aclrtDestroyStream(a), 107017, "aclrtDestroyStream: stream 0x");
  CHECK_EQ(aclrtDestroyStreamForce(a), 107017);
  CHECK_EQ(aclrtDestroyStream(foreign), 107017);
  CHECK_EQ(aclrtDestroyStream(nullptr), 100000);
  CHECK_EQ(aclrtDestroyStreamForce(nullptr), 100000);
  CHECK_FAILS(aclrtSynchronizeStream(a), 107017, "aclrtSynchronizeStream: stream 0x");
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclrtSynchronizeStream(b), 107003);
  CHECK_EQ(aclrtDestroyStream(b), 0);  // late, as programs do
}

}  // namespace

int main() {
  messages();
  without_device();
  devices();
  contexts();
  stream_handles();
  return check_result();
}
