// SPDX-License-Identifier: Apache-2.0
// After fork() while other threads create, submit and destroy, the child finds everything usable,
// and the streams that it inherited empty. (ThreadSanitizer cannot follow a child that starts
// threads.)
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "aclnn/aclnn_base.h"
#include "check.h"
#include "gate.h"

namespace {

constexpr size_t kSize = 1 << 20;

void use(aclrtStream stream) {
  void* p = nullptr;
  CHECK_EQ(aclrtMalloc(&p, kSize, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  for (int i = 0; i < 5; ++i) CHECK_EQ(aclrtMemsetAsync(p, kSize, i, kSize, stream), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(static_cast<char*>(p)[kSize - 1], 4);
  CHECK_EQ(aclrtFree(p), 0);
}

void use_objects() {
  const int64_t dims[] = {2, 3};
  aclTensor* tensor =
      aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, nullptr);
  aclIntArray* array = aclCreateIntArray(dims, 2);
  CHECK_EQ(aclDestroyTensor(tensor), 0);
  CHECK_EQ(aclDestroyIntArray(array), 0);
}

// An event, a wait and a callback that this thread runs.
void use_events(aclrtStream stream, aclrtEvent event) {
  static thread_local int ran;
  const auto self = static_cast<uint64_t>(pthread_self());
  ran = 0;
  CHECK_EQ(aclrtRecordEvent(event, nullptr), 0);
  CHECK_EQ(aclrtStreamWaitEvent(stream, event), 0);
  CHECK_EQ(aclrtSubscribeReport(self, stream), 0);
  const auto callback = [](void*) { ++ran; };
  CHECK_EQ(aclrtLaunchCallback(callback, nullptr, ACL_CALLBACK_BLOCK, stream), 0);
  CHECK_EQ(aclrtRecordEvent(event, stream), 0);
  CHECK_EQ(aclrtProcessReport(-1), 0);
  CHECK_EQ(aclrtSynchronizeEvent(event), 0);
  CHECK_EQ(ran, 1);
  CHECK_EQ(aclrtUnSubscribeReport(self, stream), 0);
}

// Work that was pending in the parent is dropped in the child: its event is as if it had never been
// recorded.
int child(aclrtStream inherited, void* memory, aclrtEvent pending) {
  check_failures = 0;
  aclrtEventWaitStatus waits;
  CHECK_EQ(aclrtSynchronizeEvent(pending), 0);
  CHECK_EQ(aclrtQueryEventWaitStatus(pending, &waits), 0);
  CHECK_EQ(waits, ACL_EVENT_WAIT_STATUS_COMPLETE);
  CHECK_EQ(aclrtProcessReport(1), 100035);
  use_events(inherited, pending);
  CHECK_EQ(aclrtDestroyEvent(pending), 0);
  use(inherited);
  use(nullptr);
  use_objects();
  CHECK_EQ(aclrtFree(memory), 0);
  aclrtStream own;
  CHECK_EQ(aclrtCreateStream(&own), 0);
  use(own);
  CHECK_EQ(aclrtSynchronizeDevice(), 0);
  CHECK_EQ(aclrtDestroyStream(own), 0);
  CHECK_EQ(aclrtDestroyStream(inherited), 0);
  CHECK_EQ(aclrtResetDeviceForce(0), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  use(nullptr);
  CHECK_EQ(aclInit(nullptr), 100002);
  CHECK_EQ(aclFinalize(), 0);
  return check_result();
}

// An event that was reset while a stream waits for it: the child has no such wait.
void fork_after_reset(aclrtStream stream) {
  aclrtEvent event;
  aclrtStream idle;
  aclrtEventWaitStatus waits;
  CHECK_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC), 0);
  CHECK_EQ(aclrtCreateStream(&idle), 0);
  {
    Gate gate(stream);
    CHECK_EQ(aclrtRecordEvent(event, stream), 0);
    CHECK_EQ(aclrtStreamWaitEvent(nullptr, event), 0);
    CHECK_EQ(aclrtResetEvent(event, idle), 0);
    CHECK_EQ(aclrtQueryEventWaitStatus(event, &waits), 0);
    CHECK_EQ(waits, ACL_EVENT_WAIT_STATUS_NOT_READY);
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(60);
      CHECK_EQ(aclrtQueryEventWaitStatus(event, &waits), 0);
      CHECK_EQ(waits, ACL_EVENT_WAIT_STATUS_COMPLETE);
      _exit(check_result());
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK_EQ(status, 0);
  }
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK_EQ(aclrtDestroyStream(idle), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
}

}  // namespace

int main() {
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  aclrtStream stream;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  use(stream);
  fork_after_reset(stream);

  std::atomic<bool> stop{false};
  std::thread busy([&] {
    CHECK_EQ(aclrtSetDevice(0), 0);
    while (!stop) {
      aclrtStream other;
      CHECK_EQ(aclrtCreateStream(&other), 0);
      use(other);
      use_objects();
      aclrtEvent event;
      CHECK_EQ(aclrtCreateEvent(&event), 0);
      use_events(other, event);
      CHECK_EQ(aclrtDestroyEvent(event), 0);
      CHECK_EQ(aclrtDestroyStream(other), 0);
    }
    CHECK_EQ(aclrtResetDevice(0), 0);
  });
  void* memory = nullptr;
  CHECK_EQ(aclrtMalloc(&memory, kSize, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  aclrtEvent event;
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  for (int i = 0; i < 20; ++i) {
    CHECK_EQ(aclrtMemsetAsync(memory, kSize, i, kSize, stream), 0);  // pending when we fork
    CHECK_EQ(aclrtRecordEvent(event, stream), 0);
    CHECK_EQ(aclrtStreamWaitEvent(nullptr, event), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(60);  // a deadlock ends the child
      _exit(child(stream, memory, event));
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK_EQ(status, 0);
  }
  stop = true;
  busy.join();
  use(stream);
  CHECK_EQ(aclrtSynchronizeEvent(event), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtFree(memory), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclFinalize(), 0);
  return check_result();
}
