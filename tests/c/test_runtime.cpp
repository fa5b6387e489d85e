// SPDX-License-Identifier: Apache-2.0
// Initialisation, devices, contexts, stream handles and messages: every code and sentence.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "check.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

// Settings are read once per process, so each is tried in a process of its own.
template <class F>
void with_setting(const char* name, const char* value, F f) {
  const pid_t pid = fork();
  if (pid == 0) {
    setenv(name, value, 1);
    f();
    _exit(check_result());
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK_EQ(status, 0);
}

void settings() {
  const auto devices = [](unsigned want) {
    return [want] {
      uint32_t count = 99;
      CHECK_EQ(aclrtGetDeviceCount(&count), 0);
      CHECK_EQ(count, want);
    };
  };
  with_setting("OPENACLNN_DEVICES", "4", devices(4));
  with_setting("OPENACLNN_DEVICES", "four", devices(1));
  with_setting("OPENACLNN_DEVICES", "0", devices(0));
  setenv("OPENACLNN_DEVICES", "4", 1);
  with_setting("ASCEND_RT_VISIBLE_DEVICES", "1,3", devices(2));
  with_setting("ASCEND_RT_VISIBLE_DEVICES", "0,2,1", devices(2));
  with_setting("ASCEND_RT_VISIBLE_DEVICES", "0,x,1", devices(1));
  with_setting("ASCEND_RT_VISIBLE_DEVICES", "0,1,7", devices(2));
  with_setting("ASCEND_RT_VISIBLE_DEVICES", "", devices(0));
  unsetenv("OPENACLNN_DEVICES");

  with_setting("OPENACLNN_PRODUCT", "310P",
               [] { CHECK_EQ(aclrtGetSocName(), std::string("Ascend310P3")); });
  with_setting("OPENACLNN_PRODUCT", "B7", [] {
    CHECK_EQ(aclrtGetSocName(), std::string("Ascend910B1"));
    CHECK_TEXT("OPENACLNN_PRODUCT: product must be ");
  });
  with_setting("OPENACLNN_SOC_NAME", "Ascend950",
               [] { CHECK_EQ(aclrtGetSocName(), std::string("Ascend950")); });
  with_setting("OPENACLNN_SOC_NAME", "", [] { CHECK(aclrtGetSocName() == nullptr); });
}

struct ConfigFile {
  explicit ConfigFile(const char* text) {
    const int file = mkstemp(path);
    CHECK(write(file, text, strlen(text)) == static_cast<ssize_t>(strlen(text)));
    close(file);
  }
  ~ConfigFile() { unlink(path); }
  char path[32] = "/tmp/openaclnn-XXXXXX";
};

void init_configurations() {
  const ConfigFile empty("\n { }\n"), other("{\"dump\": {\"dump_list\": [1, -2.5e3, true, null]}}");
  const ConfigFile same("{ \"dump\":{\"dump_list\":[1,-2.5e3,true,null]} }");
  const ConfigFile broken("{\"a\": }"), deep("[[[[[[[[[[[]]]]]]]]]]]"), ten("[[[[[[[[[[]]]]]]]]]]");
  CHECK_FAILS(aclInit("/nowhere/acl.json"), 100003, "configPath must be a readable file");
  CHECK_EQ(aclInit("/tmp"), 100003);
  CHECK_FAILS(aclInit(broken.path), 100006, "byte 6 must be a value");
  CHECK_FAILS(aclInit(deep.path), 100006, "at most 10 levels of nesting");
  with_setting("UNUSED", "", [&] { CHECK_EQ(aclInit(ten.path), 0); });
  with_setting("UNUSED", "", [&] {
    CHECK_EQ(aclInit(other.path), 0);
    CHECK_EQ(aclInit(same.path), 100002);
    CHECK_EQ(aclFinalize(), 0);
    CHECK_FAILS(aclInit(nullptr), 100000, "aclInit: configPath must say the same");
  });
  CHECK_EQ(aclInit(empty.path), 0);
  CHECK_EQ(aclInit(""), 100002);
  CHECK_EQ(aclInit(other.path), 100000);
  CHECK_EQ(aclFinalize(), 0);
}

void init_counts() {
  uint64_t count = 99;
  CHECK_FAILS(aclFinalize(), 100037, "aclFinalize: acl must be initialised");
  CHECK_EQ(aclFinalizeReference(&count), 100037);
  CHECK_EQ(count, 0u);
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_FAILS(aclInit(nullptr), 100002, "it counts 2 references now");
  CHECK_EQ(aclFinalizeReference(&count), 0);
  CHECK_EQ(count, 1u);
  CHECK_EQ(aclFinalizeReference(nullptr), 0);
  CHECK_EQ(aclFinalizeReference(&count), 100037);
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclInit(nullptr), 100002);
  CHECK_EQ(aclFinalize(), 0);  // whatever the count
  CHECK_EQ(aclFinalize(), 100037);
  CHECK_EQ(aclnnInit("/nowhere/acl.json"), 0);
  CHECK_EQ(aclnnInit(nullptr), 0);
  CHECK_EQ(aclnnFinalize(), 0);

  std::atomic<int> first{0}, repeated{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { ++(aclInit(nullptr) == 0 ? first : repeated); });
  }
  for (auto& thread : threads) thread.join();
  CHECK_EQ(first, 1);
  CHECK_EQ(repeated, 7);
  CHECK_EQ(aclFinalize(), 0);
}

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
              "aclrtMalloc: a device must be set for this thread: call aclrtSetDevice first");
  CHECK_EQ(aclrtMallocHost(&p, 1), 107002);
  CHECK_EQ(aclrtMemcpy(a, 2, b, 2, ACL_MEMCPY_HOST_TO_DEVICE), 107002);
  CHECK_EQ(aclrtMemset(a, 2, 0, 2), 107002);
  CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &n, &n), 107002);
  CHECK_EQ(aclrtGetDevice(&id), 107002);
  CHECK_EQ(aclrtGetCurrentContext(&context), 107002);
  CHECK_EQ(aclrtCreateStream(&stream), 107002);
  CHECK_EQ(aclrtSynchronizeDevice(), 107002);
  CHECK_FAILS(aclrtSynchronizeStream(nullptr), 107002,
              "aclrtSynchronizeStream: the default stream needs a current context");
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
  CHECK_FAILS(aclrtSetDevice(1), 107001, "aclrtSetDevice: deviceId must be in [0, 1), but got 1");
  CHECK_EQ(aclrtResetDevice(1), 107001);
  CHECK_FAILS(aclrtResetDevice(0), 107000, "device 0 must be set, but it was reset already");
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
  CHECK_EQ(aclrtResetDeviceForce(0), 107000);
}

void contexts() {
  aclrtContext standard, own, now;
  aclrtStream stream;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtGetCurrentContext(&standard), 0);
  CHECK_EQ(aclrtGetCurrentContext(nullptr), 100000);
  CHECK_FAILS(aclrtDestroyContext(standard), 107000, "context must come from aclrtCreateContext");
  CHECK_EQ(aclrtCreateContext(nullptr, 0), 100000);
  CHECK_EQ(aclrtCreateContext(&own, 7), 107001);
  CHECK_EQ(aclrtCreateContext(&own, 0), 0);
  CHECK_EQ(aclrtGetCurrentContext(&now), 0);
  CHECK_EQ(now, own);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtSetCurrentContext(standard), 0);
  CHECK_FAILS(aclrtDestroyStream(stream), 107003, "stream must belong to the current context");
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(aclrtSetCurrentContext(own), 0);
  CHECK_EQ(aclrtDestroyContext(own), 0);
  CHECK_FAILS(aclrtDestroyContext(own), 107017, "context must be alive");
  CHECK_EQ(aclrtDestroyContext(foreign), 107017);
  CHECK_EQ(aclrtDestroyContext(nullptr), 100000);
  CHECK_EQ(aclrtSetCurrentContext(own), 107017);
  CHECK_EQ(aclrtSetCurrentContext(nullptr), 100000);
  CHECK_EQ(aclrtGetCurrentContext(&now), 107002);
  char bytes[4];
  CHECK_EQ(aclrtSetCurrentContext(standard), 0);
  CHECK_FAILS(aclrtMemsetAsync(bytes, 4, 0, 4, stream), 107003,
              "aclrtMemsetAsync: the context of stream must be alive");
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
  CHECK_FAILS(aclrtDestroyStream(a), 107017, "aclrtDestroyStream: stream must be alive");
  CHECK_EQ(aclrtDestroyStreamForce(a), 107017);
  CHECK_EQ(aclrtDestroyStream(foreign), 107017);
  CHECK_EQ(aclrtDestroyStream(nullptr), 100000);
  CHECK_EQ(aclrtDestroyStreamForce(nullptr), 100000);
  CHECK_FAILS(aclrtSynchronizeStream(a), 107017, "aclrtSynchronizeStream: stream must be alive");
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclrtSynchronizeStream(b), 107003);
  CHECK_EQ(aclrtDestroyStream(b), 0);  // late, as programs do
}

}  // namespace

int main() {
  settings();
  init_configurations();
  init_counts();
  messages();
  without_device();
  devices();
  contexts();
  stream_handles();
  return check_result();
}
