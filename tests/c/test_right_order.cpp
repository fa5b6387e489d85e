// SPDX-License-Identifier: Apache-2.0
// Every right way to order work. tests/check/test_check_mode.py runs this in check mode too, where
// nothing may be reported.
#include <pthread.h>

#include <atomic>
#include <initializer_list>
#include <thread>
#include <vector>

#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"
#include "gate.h"

namespace {

constexpr int64_t kRows = 64, kColumns = 48, kCount = kRows * kColumns;
constexpr size_t kBytes = kCount * sizeof(float);

struct Buffer {
  explicit Buffer(float value = 0) {
    CHECK_EQ(aclrtMalloc(&data, kBytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    set(value);
  }
  ~Buffer() {
    if (data != nullptr) CHECK_EQ(aclrtFree(data), 0);
  }
  Buffer(const Buffer&) = delete;

  void set(float value) {
    const std::vector<float> host(kCount, value);
    CHECK_EQ(aclrtMemcpy(data, kBytes, host.data(), kBytes, ACL_MEMCPY_HOST_TO_DEVICE), 0);
  }
  void expect(float value) const {
    std::vector<float> host(kCount);
    CHECK_EQ(aclrtMemcpy(host.data(), kBytes, data, kBytes, ACL_MEMCPY_DEVICE_TO_HOST), 0);
    for (float element : host) {
      if (element != value) return CHECK_EQ(element, value);
    }
  }

  void* data = nullptr;
};

aclrtStream make_stream() {
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  return stream;
}

aclrtEvent make_event() {
  aclrtEvent event = nullptr;
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  return event;
}

// Columns [from, to) of the buffer, on the stream: y = leaky_relu(x), by default a half of -x.
void run(const Buffer& x, const Buffer& y, aclrtStream stream, int64_t from = 0,
         int64_t to = kColumns) {
  const int64_t shape[] = {kRows, to - from}, strides[] = {kColumns, 1}, storage[] = {kCount};
  aclTensor* tensors[2];
  for (int i = 0; i < 2; ++i) {
    tensors[i] = aclCreateTensor(shape, 2, ACL_FLOAT, strides, from, ACL_FORMAT_ND, storage, 1,
                                 i == 0 ? x.data : y.data);
  }
  float half = 0.5f;
  aclScalar* slope = aclCreateScalar(&half, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_EQ(aclnnLeakyReluGetWorkspaceSize(tensors[0], slope, tensors[1], &size, &executor), 0);
  CHECK_EQ(aclnnLeakyRelu(nullptr, size, executor, stream), 0);
  CHECK_EQ(aclDestroyScalar(slope), 0);
  for (aclTensor* tensor : tensors) CHECK_EQ(aclDestroyTensor(tensor), 0);
}

struct Streams {
  aclrtStream a = make_stream(), b = make_stream();
  ~Streams() {
    CHECK_EQ(aclrtDestroyStream(a), 0);
    CHECK_EQ(aclrtDestroyStream(b), 0);
  }
};

void test_an_event_orders_two_streams() {
  Buffer x(-4), y, z;
  Streams streams;
  aclrtEvent event = make_event();
  for (int round = 0; round < 3; ++round) {
    run(x, y, streams.a);
    CHECK_EQ(aclrtRecordEvent(event, streams.a), 0);
    CHECK_EQ(aclrtStreamWaitEvent(streams.b, event), 0);
    run(y, z, streams.b);
    CHECK_EQ(aclrtRecordEvent(event, streams.b), 0);
    CHECK_EQ(aclrtStreamWaitEvent(streams.a, event), 0);
  }
  CHECK_EQ(aclrtSynchronizeStream(streams.b), 0);
  z.expect(-1);
  CHECK_EQ(aclrtSynchronizeStream(streams.a), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
}

void test_two_streams_may_read_and_write_apart() {
  Buffer x(-4), y, z;
  Streams streams;
  run(x, y, streams.a);  // both read x
  run(x, z, streams.b);
  CHECK_EQ(aclrtSynchronizeDevice(), 0);
  run(x, y, streams.a, 0, 20);  // rows interleave, no byte is shared
  run(x, y, streams.b, 20, kColumns);
  CHECK_EQ(aclrtSynchronizeDevice(), 0);
  y.expect(-2);
  z.expect(-2);
}

void test_ways_of_waiting() {
  Buffer x(-4), y;
  Streams streams;
  run(x, y, streams.a);
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  while (status != ACL_STREAM_STATUS_COMPLETE) {
    CHECK_EQ(aclrtStreamQuery(streams.a, &status), 0);
  }
  y.expect(-2);

  aclrtEvent event = make_event();
  run(y, x, streams.a);
  CHECK_EQ(aclrtRecordEvent(event, streams.a), 0);
  CHECK_EQ(aclrtSynchronizeEvent(event), 0);
  x.expect(-1);

  run(x, y, streams.b);
  CHECK_EQ(aclrtRecordEvent(event, streams.b), 0);
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  while (recorded != ACL_EVENT_RECORDED_STATUS_COMPLETE) {
    CHECK_EQ(aclrtQueryEventStatus(event, &recorded), 0);
  }
  y.expect(-0.5f);
  CHECK_EQ(aclrtDestroyEvent(event), 0);

  run(y, x, nullptr);
  CHECK_EQ(aclrtSynchronizeStreamWithTimeout(nullptr, 60000), 0);
  x.expect(-0.25f);

  aclrtStream passing = make_stream();
  run(x, y, passing);
  CHECK_EQ(aclrtDestroyStream(passing), 0);
  y.expect(-0.125f);
}

void test_a_callback_informs_the_host() {
  Buffer x(-4), y;
  aclrtStream stream = make_stream();
  std::atomic<bool> called = false;
  std::atomic<uint64_t> id = 0;
  std::thread reporter([&] {
    id = static_cast<uint64_t>(pthread_self());
    while (!called) (void)aclrtProcessReport(20);
    (void)aclGetRecentErrMsg();
  });
  while (id == 0) std::this_thread::yield();
  CHECK_EQ(aclrtSubscribeReport(id, stream), 0);
  run(x, y, stream);
  const auto call = [](void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; };
  CHECK_EQ(aclrtLaunchCallback(call, &called, ACL_CALLBACK_NO_BLOCK, stream), 0);
  while (!called) std::this_thread::yield();
  y.expect(-2);
  reporter.join();
  CHECK_EQ(aclrtUnSubscribeReport(id, stream), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

void test_copies_in_a_stream() {
  Buffer x, y;
  aclrtStream stream = make_stream();
  void* pinned = nullptr;
  CHECK_EQ(aclrtMallocHost(&pinned, kBytes), 0);
  auto* values = static_cast<float*>(pinned);
  for (int64_t i = 0; i < kCount; ++i) values[i] = -8;
  CHECK_EQ(aclrtMemcpyAsync(x.data, kBytes, pinned, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream), 0);
  run(x, y, stream);
  CHECK_EQ(aclrtMemcpyAsync(x.data, kBytes, y.data, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream),
           0);
  CHECK_EQ(aclrtMemcpyAsync(pinned, kBytes, x.data, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream), 0);
  CHECK_EQ(aclrtMemsetAsync(y.data, kBytes, 0, kBytes, stream), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(values[0], -4.0f);
  CHECK_EQ(values[kCount - 1], -4.0f);
  y.expect(0);
  CHECK_EQ(aclrtFreeHost(pinned), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

void test_memory_that_waits_for_the_device() {
  Buffer x(-4), y;
  aclrtStream stream = make_stream();
  {
    Gate gate(stream);  // so that the work is not done when it is submitted
    run(x, y, stream);
    gate.open();
    CHECK_EQ(aclrtFreeWithDevSync(y.data), 0);
    y.data = nullptr;
  }
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

void test_threads_with_memory_of_their_own() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      CHECK_EQ(aclrtSetDevice(0), 0);
      aclrtStream stream = make_stream();
      Buffer x(-4), y;
      for (int round = 0; round < 20; ++round) {
        run(x, y, stream);
        CHECK_EQ(aclrtSynchronizeStream(stream), 0);
        y.expect(-2);
      }
      CHECK_EQ(aclrtDestroyStream(stream), 0);
      CHECK_EQ(aclrtResetDevice(0), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void test_reset_waits() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  aclrtContext context = nullptr;
  CHECK_EQ(aclrtCreateContext(&context, 0), 0);
  Buffer x(-4), y;
  run(x, y, nullptr);
  CHECK_EQ(aclrtDestroyContext(context), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  y.expect(-2);
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

}  // namespace

int main() {
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  test_an_event_orders_two_streams();
  test_two_streams_may_read_and_write_apart();
  test_ways_of_waiting();
  test_a_callback_informs_the_host();
  test_copies_in_a_stream();
  test_memory_that_waits_for_the_device();
  test_threads_with_memory_of_their_own();
  test_reset_waits();
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclFinalize(), 0);
  return check_result();
}
