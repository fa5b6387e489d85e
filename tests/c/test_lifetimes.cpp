// SPDX-License-Identifier: Apache-2.0
// Streams, contexts, devices and acl itself end while they are used; and two devices work side by
// side.

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "check.h"
#include "gate.h"

namespace {

constexpr size_t kSize = 1 << 20;
const auto any = ACL_MEM_MALLOC_HUGE_FIRST;

// Streams go on after aclFinalize; everything may be freed late, and from another thread.
void after_finalize() {
  void *x, *y;
  aclrtStream stream;
  aclrtEvent event;
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  CHECK_EQ(aclrtMalloc(&x, kSize, any), 0);
  CHECK_EQ(aclrtMallocHost(&y, kSize), 0);
  {
    Gate gate(stream);
    CHECK_EQ(aclrtMemsetAsync(x, kSize, 5, kSize, stream), 0);
    CHECK_EQ(aclrtRecordEvent(event, stream), 0);
    CHECK_EQ(aclFinalize(), 0);
  }
  CHECK_EQ(aclrtSynchronizeEvent(event), 0);
  CHECK_EQ(static_cast<char*>(x)[kSize - 1], 5);
  CHECK_EQ(aclrtResetDevice(0), 0);
  std::thread([&] {
    CHECK_EQ(aclrtFree(x), 0);
    CHECK_EQ(aclrtFreeHost(y), 0);
    CHECK_EQ(aclrtDestroyEvent(event), 0);
    CHECK_EQ(aclrtDestroyStream(stream), 0);
  }).join();
  CHECK_EQ(aclFinalize(), 100037);
}

// Destroying waits for queued work; the host and another stream go on meanwhile.
void destroyed_while_queued() {
  void* x;
  aclrtStream a, b;
  aclrtEvent event;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(&a), 0);
  CHECK_EQ(aclrtCreateStream(&b), 0);
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  CHECK_EQ(aclrtMalloc(&x, kSize, any), 0);
  {
    Gate gate(a);
    CHECK_EQ(aclrtRecordEvent(event, a), 0);
    CHECK_EQ(aclrtStreamWaitEvent(b, event), 0);
    CHECK_EQ(aclrtMemsetAsync(x, kSize, 9, kSize, b), 0);
    std::thread destroyer([&] {
      CHECK_EQ(aclrtSetDevice(0), 0);
      CHECK_EQ(aclrtDestroyStream(b), 0);
      CHECK_EQ(aclrtResetDevice(0), 0);
    });
    gate.open();
    destroyer.join();
    CHECK_EQ(static_cast<char*>(x)[kSize - 1], 9);
  }
  CHECK_EQ(aclrtDestroyStream(a), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtFree(x), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// A thread that synchronises a stream while another one destroys it gets success after the work is
// done, or the error that the stream is gone.
void destroyed_while_synchronised() {
  void* x;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtMalloc(&x, kSize, any), 0);
  for (int round = 0; round < 50; ++round) {
    aclrtStream stream;
    CHECK_EQ(aclrtCreateStream(&stream), 0);
    for (int i = 0; i < 10; ++i) CHECK_EQ(aclrtMemsetAsync(x, kSize, i, kSize, stream), 0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([stream, i] {
        const aclError code =
            i == 0 ? aclrtSynchronizeStream(stream) : aclrtSynchronizeStreamWithTimeout(stream, 1);
        CHECK(code == 0 || code == 107017 || (i != 0 && code == 507046));
      });
    }
    CHECK_EQ(aclrtDestroyStream(stream), 0);
    CHECK_EQ(static_cast<char*>(x)[kSize - 1], 9);
    for (std::thread& thread : threads) thread.join();
  }
  CHECK_EQ(aclrtFree(x), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// A context ends when its work is done, including work of other streams that it waits for.
void contexts_with_work() {
  aclrtContext own, standard;
  aclrtStream in_standard, in_own;
  aclrtEvent event;
  void* x;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtGetCurrentContext(&standard), 0);
  CHECK_EQ(aclrtCreateStream(&in_standard), 0);
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  CHECK_EQ(aclrtMalloc(&x, kSize, any), 0);
  CHECK_EQ(aclrtCreateContext(&own, 0), 0);
  CHECK_EQ(aclrtCreateStream(&in_own), 0);
  {
    Gate gate(in_standard);
    CHECK_EQ(aclrtRecordEvent(event, in_standard), 0);
    CHECK_EQ(aclrtStreamWaitEvent(in_own, event), 0);
    CHECK_EQ(aclrtMemsetAsync(x, kSize, 3, kSize, in_own), 0);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(1), 507046);
    std::thread opener([&] { gate.open(); });
    CHECK_EQ(aclrtDestroyContext(own), 0);
    opener.join();
    CHECK_EQ(static_cast<char*>(x)[kSize - 1], 3);
    CHECK_EQ(aclrtSetCurrentContext(standard), 0);
  }
  CHECK_EQ(aclrtRecordEvent(event, in_own), 107003);
  CHECK_EQ(aclrtStreamWaitEvent(in_own, event), 107003);
  CHECK_EQ(aclrtDestroyStream(in_own), 0);
  CHECK_EQ(aclrtDestroyStream(in_standard), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtFree(x), 0);
  CHECK_EQ(aclrtResetDeviceForce(0), 0);
}

// Streams for which the host does not wait do their work all the same.
void unawaited_streams() {
  void* x;
  aclrtStream stream;
  aclrtEvent event;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtMalloc(&x, kSize, any), 0);
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  for (uint32_t flag :
       {ACL_STREAM_PERSISTENT, ACL_STREAM_CPU_SCHEDULE, ACL_STREAM_DEVICE_USE_ONLY}) {
    CHECK_EQ(aclrtCreateStreamWithConfig(&stream, 7, flag), 0);
    Gate gate(nullptr);
    CHECK_EQ(aclrtRecordEvent(event, nullptr), 0);
    CHECK_EQ(aclrtStreamWaitEvent(stream, event), 0);
    CHECK_EQ(aclrtMemsetAsync(x, kSize, 4, kSize, stream), 0);
    CHECK_EQ(aclrtRecordEvent(event, stream), 0);
    CHECK_EQ(aclrtSynchronizeStream(stream), 0);
    aclrtStreamStatus status;
    CHECK_EQ(aclrtStreamQuery(stream, &status), 0);
    CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY);
    gate.open();
    CHECK_EQ(aclrtSynchronizeEvent(event), 0);
    CHECK_EQ(static_cast<char*>(x)[kSize - 1], 4);
    CHECK_EQ(aclrtMemset(x, kSize, 0, kSize), 0);
    CHECK_EQ(aclrtDestroyStream(stream), 0);
  }
  aclrtStreamStatus status;
  CHECK_FAILS(aclrtStreamQuery(nullptr, nullptr), 100000, "status must not be NULL");
  CHECK_EQ(aclrtStreamQuery(stream, &status), 107017);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtFree(x), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// Work of one device does not delay the other.
void two_devices() {
  aclrtStream first, second;
  aclrtPtrAttributes found;
  void* x;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(&first), 0);
  {
    Gate gate(first);
    CHECK_EQ(aclrtSetDevice(1), 0);
    CHECK_EQ(aclrtCreateStream(&second), 0);
    CHECK_EQ(aclrtMalloc(&x, kSize, any), 0);
    CHECK_EQ(aclrtPointerGetAttributes(x, &found), 0);
    CHECK_EQ(found.location.id, 1u);
    CHECK_EQ(aclrtMemsetAsync(x, kSize, 6, kSize, second), 0);
    CHECK_EQ(aclrtSynchronizeDevice(), 0);
    CHECK_EQ(static_cast<char*>(x)[kSize - 1], 6);
    CHECK_FAILS(aclrtDestroyStream(first), 107003, "belongs to another context");
    CHECK_EQ(aclrtFreeWithDevSync(x), 0);
    CHECK_EQ(aclrtResetDevice(1), 0);
    CHECK_EQ(aclrtSetDevice(0), 0);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(1), 507046);
  }
  CHECK_EQ(aclrtDestroyStream(first), 0);
  CHECK_EQ(aclrtDestroyStream(second), 0);
  CHECK_EQ(aclrtResetDeviceForce(0), 0);
}

}  // namespace

int main() {
  setenv("OPENACLNN_DEVICES", "2", 1);
  after_finalize();
  destroyed_while_queued();
  destroyed_while_synchronised();
  contexts_with_work();
  unawaited_streams();
  two_devices();
  return check_result();
}
