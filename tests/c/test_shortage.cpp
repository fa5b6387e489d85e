// SPDX-License-Identifier: Apache-2.0
// Without memory or threads, calls return a code and a sentence or work more slowly; they never
// throw.
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <set>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"

namespace {

std::atomic<bool> scarce{false};
std::atomic<int> left{0};  // allocations that still succeed
std::atomic<int> refused{0};

}  // namespace

// Not inlined: GCC takes malloc with delete, or new with free, for a mistake.
[[gnu::noinline]] void* operator new(size_t size) {
  if (scarce && left-- <= 0) {
    ++refused;
    throw std::bad_alloc();
  }
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace {

constexpr size_t kLarge = 1 << 20;
const auto any = ACL_MEM_MALLOC_HUGE_FIRST;

// Returns the code of f() when all allocations but the first `count` fail.
template <class F>
int with(int count, F f) {
  left = count;
  refused = 0;
  scarce = true;
  const int code = f();
  scarce = false;
  return code;
}

// Makes each allocation of f() fail once, and all after it; in the end none fails.
template <class F>
void fails_or_works(const char* call, int code, F f) {
  for (int count = 0; count < 1000; ++count) {
    (void)aclGetRecentErrMsg();
    const int got = with(count, f);
    if (got != 0) {
      CHECK_FAILS(got, code, std::string(call) + ": out of memory");
    }
    if (refused == 0) return CHECK_EQ(got, 0);
  }
  CHECK(!"ends");
}

void the_first_use_of_everything() {
  aclrtStream stream;
  float value = 1;
  CHECK_EQ(with(0, [] { return aclrtSetDevice(0); }), 0);
  CHECK_EQ(with(0, [&] { return aclrtCreateStream(&stream); }), 0);
  CHECK_EQ(with(0, [&] { return aclrtMemset(&value, 4, 0, 4); }), 0);
  CHECK_EQ(with(0, [&] { return aclrtMemsetAsync(&value, 4, 0, 4, stream); }), 0);
  CHECK_EQ(with(0, [&] { return aclrtDestroyStream(stream); }), 0);
  CHECK_EQ(with(0, [&] { return aclDestroyScalar(aclCreateScalar(&value, ACL_FLOAT)); }), 0);
  CHECK_EQ(with(0, [] { return aclFinalize(); }), 100037);
  (void)aclGetRecentErrMsg();
}

void initialisation() {
  char path[] = "/tmp/openaclnn-XXXXXX";
  const std::string text =
      "{\"a key that no short string holds\": [" + std::string(9000, ' ') + "]}";
  const int file = mkstemp(path);
  CHECK_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(file);
  fails_or_works("aclInit", 207001, [&] { return aclInit(path); });
  CHECK_EQ(aclFinalize(), 0);
  unlink(path);
}

void memory_and_streams() {
  void *p = nullptr, *q = nullptr;
  fails_or_works("aclrtMalloc", 207001, [&] { return aclrtMalloc(&p, kLarge, any); });
  fails_or_works("aclrtMallocHost", 207001, [&] { return aclrtMallocHost(&q, 1); });
  fails_or_works("aclrtMemsetAsync", 207001,
                 [&] { return aclrtMemsetAsync(p, kLarge, 7, kLarge, nullptr); });
  fails_or_works("aclrtSynchronizeDevice", 0,
                 [&] { return aclrtMemsetAsync(p, 1, 7, 1, nullptr), aclrtSynchronizeDevice(); });
  CHECK_EQ(static_cast<char*>(p)[kLarge - 1], 7);
  CHECK_EQ(aclrtFree(p), 0);
  CHECK_EQ(aclrtFreeHost(q), 0);
}

void events_and_callbacks() {
  static bool opened;
  const auto open = [](void*) { opened = true; };
  const auto self = static_cast<uint64_t>(pthread_self());
  aclrtEvent event;
  aclrtStream held, stream;
  CHECK_EQ(aclrtCreateStream(&held), 0);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  void* p = nullptr;  // work for the threads of both, which are there from then on
  CHECK_EQ(aclrtMalloc(&p, kLarge, any), 0);
  CHECK_EQ(aclrtMemsetAsync(p, kLarge, 0, kLarge, held), 0);
  CHECK_EQ(aclrtSynchronizeStream(held), 0);
  CHECK_EQ(aclrtMemsetAsync(p, kLarge, 0, kLarge, stream), 0);
  CHECK_EQ(aclrtFreeWithDevSync(p), 0);
  fails_or_works("aclrtCreateEvent", 207001, [&] { return aclrtCreateEvent(&event); });
  fails_or_works("aclrtSubscribeReport", 207001, [&] { return aclrtSubscribeReport(self, held); });
  fails_or_works("aclrtLaunchCallback", 207001,
                 [&] { return aclrtLaunchCallback(open, nullptr, ACL_CALLBACK_NO_BLOCK, held); });
  CHECK_EQ(aclrtProcessReport(-1), 0);
  CHECK_EQ(aclrtLaunchCallback(open, nullptr, ACL_CALLBACK_BLOCK, held), 0);
  fails_or_works("aclrtSynchronizeDeviceWithTimeout", 207001, [&] {
    const aclError code = aclrtSynchronizeDeviceWithTimeout(0);
    return code == 507046 ? 0 : code;
  });
  fails_or_works("aclrtRecordEvent", 207001, [&] { return aclrtRecordEvent(event, stream); });
  CHECK_EQ(aclrtRecordEvent(event, held), 0);
  fails_or_works("aclrtStreamWaitEvent", 207001,
                 [&] { return aclrtStreamWaitEvent(stream, event); });
  CHECK_EQ(aclrtProcessReport(-1), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK(opened);
  CHECK_EQ(aclrtUnSubscribeReport(self, held), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtDestroyStream(held), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

void objects() {
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  CHECK_EQ(with(0,
                [&] {
                  return aclCreateTensor(huge, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, huge, 2,
                                         nullptr) != nullptr;
                }),
           0);
  CHECK_TEXT("AclNN_Inner_Error(EZ9999): aclCreateTensor: out of memory");
}

void a_name_that_is_no_product() {
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("OPENACLNN_PRODUCT", "none of these", 1);
    CHECK_EQ(with(0, [] { return aclrtGetSocName() != nullptr; }), 0);
    CHECK_TEXT("aclrtGetSocName: out of memory");
    _exit(check_result());
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK_EQ(status, 0);
}

std::set<std::string> tasks() {
  std::set<std::string> names;
  DIR* folder = opendir("/proc/self/task");
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') names.insert(entry->d_name);
  }
  closedir(folder);
  return names;
}

uint64_t blocked_in(const std::string& task) {
  uint64_t blocked = 0;
  char line[256];
  FILE* file = std::fopen(("/proc/self/task/" + task + "/status").c_str(), "r");
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "SigBlk:", 7) == 0) blocked = std::strtoull(line + 7, nullptr, 16);
  }
  std::fclose(file);
  return blocked;
}

// Work that needs the pool and a worker of the stream.
void compute() {
  std::vector<float> x(kLarge, -2), y(kLarge, 0);
  const int64_t n = kLarge;
  float slope = 0.5f;
  aclTensor* self = aclCreateTensor(&n, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &n, 1, x.data());
  aclTensor* out = aclCreateTensor(&n, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &n, 1, y.data());
  aclScalar* scalar = aclCreateScalar(&slope, ACL_FLOAT);
  uint64_t size;
  aclOpExecutor* executor;
  CHECK_EQ(aclnnLeakyReluGetWorkspaceSize(self, scalar, out, &size, &executor), 0);
  CHECK_EQ(aclnnLeakyRelu(nullptr, 0, executor, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK(y == std::vector<float>(kLarge, -1));
  CHECK_EQ(aclDestroyTensor(self), 0);
  CHECK_EQ(aclDestroyTensor(out), 0);
  CHECK_EQ(aclDestroyScalar(scalar), 0);
}

void threads() {
  pthread_attr_t usual, endless;
  CHECK_EQ(pthread_getattr_default_np(&usual), 0);
  pthread_attr_init(&endless);
  CHECK_EQ(pthread_attr_setstacksize(&endless, size_t{1} << 47),
           0);  // more than there are addresses
  CHECK_EQ(pthread_setattr_default_np(&endless), 0);
  const std::set<std::string> before = tasks();
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  compute();
  const std::set<std::string> after = tasks();
  CHECK(std::includes(before.begin(), before.end(), after.begin(), after.end()));
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  CHECK(!sigismember(&mask, SIGUSR1));

  CHECK_EQ(pthread_setattr_default_np(&usual), 0);
  compute();
  int started = 0;
  for (const std::string& task : tasks()) {
    if (before.count(task) != 0) continue;
    ++started;
    for (int i = 0; i < 1000 && blocked_in(task) >> (SIGSEGV - 1) & 1; ++i)
      usleep(1000);  // still starting
    const uint64_t blocked = blocked_in(task);
    CHECK((blocked >> (SIGUSR1 - 1) & 1) == 1);
    CHECK((blocked >> (SIGSEGV - 1) & 1) == 0);
  }
  CHECK_EQ(started, 4);  // the worker of the stream, and the pool without its caller
  pthread_attr_destroy(&endless);
  pthread_attr_destroy(&usual);
}

}  // namespace

int main() {
  setenv("OPENACLNN_NUM_THREADS", "4", 1);
  a_name_that_is_no_product();
  the_first_use_of_everything();
  initialisation();
  memory_and_streams();
  events_and_callbacks();
  objects();
  threads();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}
