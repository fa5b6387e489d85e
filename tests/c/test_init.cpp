// SPDX-License-Identifier: Apache-2.0
// Initialisation, and what the environment and the configuration file choose.
#include <dlfcn.h>
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

// Settings are read once per process, so each is tried in a separate process.
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
  with_setting("OPENACLNN_PRODUCT", "B7",  // reported on stderr
               [] { CHECK_EQ(aclrtGetSocName(), std::string("Ascend910B1")); });
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
  CHECK_FAILS(aclInit("/nowhere/acl.json"), 100003, "cannot be read");
  CHECK_EQ(aclInit("/tmp"), 100003);
  CHECK_FAILS(aclInit(broken.path), 100006, "byte 6 must be a value");
  CHECK_FAILS(aclInit(deep.path), 100006, "at most 10 levels of nesting");
  with_setting("UNUSED", "", [&] { CHECK_EQ(aclInit(ten.path), 0); });
  with_setting("UNUSED", "", [&] {
    CHECK_EQ(aclInit(other.path), 0);
    CHECK_EQ(aclInit(same.path), 100002);
    CHECK_EQ(aclFinalize(), 0);
    CHECK_FAILS(aclInit(nullptr), 100000,
                "aclInit: the configuration differs from that of the first aclInit");
  });
  CHECK_EQ(aclInit(empty.path), 0);
  CHECK_EQ(aclInit(""), 100002);
  CHECK_EQ(aclInit(other.path), 100000);
  CHECK_EQ(aclFinalize(), 0);
}

// What other threads record while a call is tried on a product stays, and what it records does not.
void judged_beside_failures() {
  using Call = int32_t (*)(void*);
  const auto call_on = reinterpret_cast<int32_t (*)(const char*, Call, void*, char*, size_t)>(
      dlsym(RTLD_DEFAULT, "openaclnn_call_on_product"));
  const Call call = [](void*) -> int32_t {
    for (int i = 0; i < 5; ++i) CHECK_EQ(aclrtSynchronizeStream(foreign), 107017);
    std::thread([] { CHECK_EQ(aclrtFree(nullptr), 100000); }).join();
    return 1;
  };
  char sentence[200] = "";
  CHECK_EQ(call_on("910", call, nullptr, sentence, sizeof sentence), 1);
  CHECK_EQ(std::string(sentence).find("aclrtSynchronizeStream: stream 0x"), size_t{0});
  const std::string text = aclGetRecentErrMsg();
  CHECK(text.find("aclrtFree: devPtr must not be NULL") != std::string::npos);
  CHECK_EQ(text.find("aclrtSynchronizeStream"), std::string::npos);
}

void init_settings() {
  const ConfigFile by_default(
      "{\"x\": {\"err_msg_mode\": \"9\"}, \"defaultDevice\": {\"a\": [1, \"]\\\"\"], "
      "\"default_device\": \"0\"}, \"err_msg_mode\": \"0\"}");
  const ConfigFile absent("{\"defaultDevice\": {\"default_device\": \"1\"}}");
  const ConfigFile number("{\"defaultDevice\": {\"default_device\": 0}}");
  const ConfigFile process("{\"err_msg_mode\": \"1\"}"), other("{\"err_msg_mode\": 1}");
  CHECK_FAILS(aclInit(absent.path), 100000, "string with a number in [0, 1), but got \"1\"");
  CHECK_FAILS(aclInit(number.path), 100000, "default_device must be a string with a number");
  CHECK_FAILS(aclInit(other.path), 100000, "err_msg_mode must be \"0\" or \"1\", but got 1");
  with_setting("UNUSED", "", [&] {
    void* p;
    int32_t device = 99;
    CHECK_EQ(aclInit(by_default.path), 0);
    CHECK_EQ(aclrtMalloc(&p, 1 << 20, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    CHECK_EQ(aclrtMemsetAsync(p, 1 << 20, 0, 1 << 20, nullptr), 0);
    CHECK_EQ(aclrtResetDevice(0), 0);  // waits for it; the next call opens the device again
    CHECK_EQ(aclrtGetDevice(&device), 0);
    CHECK_EQ(device, 0);
    CHECK_EQ(aclrtSetDevice(0), 0);
    CHECK_EQ(aclrtResetDevice(0), 0);
    CHECK_EQ(aclrtResetDevice(0), 107000);
    std::thread([&] { CHECK_EQ(aclrtFree(p), 0), CHECK_EQ(aclrtSynchronizeDevice(), 0); }).join();
  });
  with_setting("UNUSED", "", [&] {
    CHECK_EQ(aclInit(process.path), 0);
    std::thread([] { CHECK_EQ(aclrtFree(nullptr), 100000); }).join();
    CHECK_EQ(aclrtSynchronizeStream(foreign), 107017);  // has its own sentence to add to
    std::thread([] {
      const std::string text = aclGetRecentErrMsg();
      CHECK(text.find("aclrtFree: devPtr must not be NULL") != std::string::npos);
      CHECK(text.find("aclrtSynchronizeStream: stream 0x") != std::string::npos);
    }).join();
    CHECK_EQ(aclGetRecentErrMsg(), std::string());
    judged_beside_failures();
  });
}

void dumps() {
  const ConfigFile wanted("{\"dump\": {\"dump_path\": \"./\", \"dump_list\": []}}");
  const ConfigFile scene("{\"dump\": {\"dump_path\": \"./\", \"dump_scene\": \"lite_exception\"}}");
  const int64_t dim = 2;
  aclTensor* tensor =
      aclCreateTensor(&dim, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &dim, 1, nullptr);
  aclTensor* given[] = {tensor, tensor};
  CHECK_FAILS(aclDumpOpTensors(nullptr, "a", given, 1, 1, nullptr), 161001, "opType must not");
  CHECK_EQ(aclDumpOpTensors("Add", nullptr, given, 1, 1, nullptr), 161001);
  CHECK_EQ(aclDumpOpTensors("Add", "a", nullptr, 1, 1, nullptr), 161001);
  CHECK_EQ(aclDumpOpTensors("Add", "a", given, SIZE_MAX, 1, nullptr), 161002);
  CHECK_EQ(aclDumpOpTensors("Add", "a", given, 1, 1, nullptr), 0);
  aclTensor* optional[] = {tensor, nullptr};
  CHECK_EQ(aclDumpOpTensors("Add", "a", optional, 1, 1, nullptr), 0);
  with_setting("UNUSED", "", [&] {
    CHECK_EQ(aclInit(scene.path), 0);
    CHECK_EQ(aclDumpOpTensors("Add", "a", given, 1, 1, nullptr), 0);
  });
  with_setting("UNUSED", "", [&] {
    CHECK_EQ(aclInit(wanted.path), 0);
    CHECK_FAILS(aclDumpOpTensors("Add", "a", given, 1, 1, nullptr), 200001,
                "Not_Supported(EH0006): aclDumpOpTensors: dumping tensors to the dump_path");
  });
  CHECK_EQ(aclDestroyTensor(tensor), 0);
  CHECK_FAILS(aclDumpOpTensors("Add", "a", given, 1, 1, nullptr), 161002, "tensors[0] 0x");
}

// Programs ignore the status of a second aclInit: it does not hide a later failure.
void a_repeat_is_no_cause() {
  (void)aclGetRecentErrMsg();
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclInit(nullptr), 100002);
  CHECK_EQ(aclInit(nullptr), 100002);
  CHECK_EQ(aclrtSynchronizeStream(foreign), 107017);
  CHECK_EQ(aclrtFree(nullptr), 100000);
  const std::string text = aclGetRecentErrMsg();
  CHECK_EQ(text.find("aclInit"), std::string::npos);
  CHECK(text.find("aclrtFree") < text.find("aclrtSynchronizeStream"));
  CHECK_EQ(aclrtFree(nullptr), 100000);  // what was there before stays
  CHECK_EQ(aclInit(nullptr), 100002);
  const std::string both = aclGetRecentErrMsg();
  CHECK(both.find("aclInit: acl is already initialised; its reference count is now 4") <
        both.find("aclrtFree: devPtr must not be NULL"));
  CHECK(both.find("aclrtFree: devPtr must not be NULL") != std::string::npos);
  CHECK_EQ(aclGetRecentErrMsg(), std::string());
  CHECK_EQ(aclFinalize(), 0);
}

void init_counts() {
  uint64_t count = 99;
  CHECK_FAILS(aclFinalize(), 100037, "aclFinalize: acl is not initialised");
  CHECK_EQ(aclFinalizeReference(&count), 100037);
  CHECK_EQ(count, 0u);
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_FAILS(aclInit(nullptr), 100002, "its reference count is now 2");
  CHECK_EQ(aclFinalizeReference(&count), 0);
  CHECK_EQ(count, 1u);
  CHECK_EQ(aclFinalizeReference(nullptr), 0);
  CHECK_EQ(aclFinalizeReference(&count), 100037);
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclInit(nullptr), 100002);
  CHECK_EQ(aclFinalize(), 0);  // however often aclInit was called
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

}  // namespace

int main() {
  settings();
  init_settings();
  dumps();
  init_configurations();  // the process remembers the first one
  init_counts();
  a_repeat_is_no_cause();
  return check_result();
}
