// SPDX-License-Identifier: Apache-2.0
// fork() while another thread uses parts of the library for the first time in the process: the
// child can use all of them. (ThreadSanitizer cannot follow a child that starts threads.)
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"

namespace {

constexpr int64_t kElements = 1 << 17;  // of several threads

void compute(aclrtStream stream) {
  std::vector<float> x(kElements, -2), y(kElements, 0);
  const int64_t n = kElements;
  aclTensor* self = aclCreateTensor(&n, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &n, 1, x.data());
  aclTensor* out = aclCreateTensor(&n, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &n, 1, y.data());
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_EQ(aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor), 0);
  CHECK_EQ(aclnnLeakyRelu(nullptr, 0, executor, stream), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(y[kElements - 1], -1.0f);
  CHECK_EQ(aclDestroyScalar(slope), 0);
  CHECK_EQ(aclDestroyTensor(out), 0);
  CHECK_EQ(aclDestroyTensor(self), 0);
}

void use_events(aclrtStream stream) {
  aclrtEvent event;
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  const auto self = static_cast<uint64_t>(pthread_self());
  CHECK_EQ(aclrtSubscribeReport(self, stream), 0);
  CHECK_EQ(aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_BLOCK, stream), 0);
  CHECK_EQ(aclrtRecordEvent(event, stream), 0);
  CHECK_EQ(aclrtProcessReport(-1), 0);
  CHECK_EQ(aclrtSynchronizeEvent(event), 0);
  CHECK_EQ(aclrtUnSubscribeReport(self, stream), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
}

void use_memory() {
  void* memory = nullptr;
  CHECK_EQ(aclrtMalloc(&memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtFree(memory), 0);
  aclrtPhysicalMemProp prop = {};
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  constexpr size_t kSize = size_t{2} << 20;
  aclrtDrvMemHandle handle = nullptr;
  void* address = nullptr;
  CHECK_EQ(aclrtMallocPhysical(&handle, kSize, &prop, 0), 0);
  CHECK_EQ(aclrtReserveMemAddress(&address, kSize, 0, nullptr, 1), 0);
  CHECK_EQ(aclrtMapMem(address, kSize, 0, handle, 0), 0);
  CHECK_EQ(aclrtUnmapMem(address), 0);
  CHECK_EQ(aclrtReleaseMemAddress(address), 0);
  CHECK_EQ(aclrtFreePhysical(handle), 0);
}

void use_lists() {
  const int64_t dims[] = {2, 3};
  aclIntArray* array = aclCreateIntArray(dims, 2);
  CHECK_EQ(aclDestroyIntArray(array), 0);
  CHECK_EQ(aclDestroyIntArray(array), 161002);  // whose sentence is a thread's first
}

void use_all() {
  const aclError initialised = aclInit(nullptr);  // by both threads of the parent
  if (initialised != 0) CHECK_EQ(initialised, 100002);
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK(aclrtGetSocName() != nullptr);
  use_lists();
  aclrtStream stream;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  compute(stream);
  use_events(stream);
  use_memory();
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

int status_of(pid_t pid) {
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

// In a process that has not used the library: a thread begins, and this one forks in the midst.
int fork_after(std::chrono::microseconds delay) {
  std::atomic<bool> begun{false};
  std::thread first([&] {
    begun = true;
    use_all();
  });
  while (!begun) std::this_thread::yield();
  const auto until = std::chrono::steady_clock::now() + delay;
  while (std::chrono::steady_clock::now() < until) {
  }
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(20);  // a deadlock ends the child
    check_failures = 0;
    use_all();
    _exit(check_result());
  }
  CHECK_EQ(status_of(pid), 0);
  first.join();
  return check_result();
}

}  // namespace

int main() {
  for (int i = 0; i < 300 && check_failures == 0; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(60);
      _exit(fork_after(std::chrono::microseconds(5 * i)));
    }
    CHECK_EQ(status_of(pid), 0);
  }
  return check_result();
}
