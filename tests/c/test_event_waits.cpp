// SPDX-License-Identifier: Apache-2.0
// Waits across streams: what waits, for which record and how long, and what ends meanwhile.
#include <atomic>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "check.h"
#include "gate.h"

namespace {

aclrtEventRecordedStatus recorded(aclrtEvent event) {
  auto status = static_cast<aclrtEventRecordedStatus>(-1);
  CHECK_EQ(aclrtQueryEventStatus(event, &status), 0);
  return status;
}

aclrtEventWaitStatus waited(aclrtEvent event) {
  auto status = static_cast<aclrtEventWaitStatus>(-1);
  CHECK_EQ(aclrtQueryEventWaitStatus(event, &status), 0);
  return status;
}

aclrtStreamStatus state(aclrtStream stream) {
  auto status = static_cast<aclrtStreamStatus>(-1);
  CHECK_EQ(aclrtStreamQuery(stream, &status), 0);
  return status;
}

// a is held, b waits for a point of a, and c for one of b: nothing runs early, and everything runs
// in the end.
void waits_across_streams() {
  constexpr size_t kSize = 1 << 20;
  aclrtStream a, b, c;
  aclrtEvent in_a, in_b;
  char* x;
  CHECK_EQ(aclrtSetDevice(0), 0);
  for (aclrtStream* stream : {&a, &b, &c}) CHECK_EQ(aclrtCreateStream(stream), 0);
  CHECK_EQ(aclrtCreateEvent(&in_a), 0);
  CHECK_EQ(aclrtCreateEventWithFlag(&in_b, ACL_EVENT_SYNC), 0);
  CHECK_EQ(aclrtMalloc(reinterpret_cast<void**>(&x), kSize, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMemset(x, kSize, 0, kSize), 0);
  {
    Gate gate(a);
    CHECK_EQ(aclrtMemsetAsync(x, kSize, 1, kSize, a), 0);
    CHECK_EQ(aclrtRecordEvent(in_a, a), 0);
    CHECK_EQ(aclrtStreamWaitEvent(a, in_a), 0);  // of its own stream: in order anyway
    CHECK_EQ(aclrtStreamWaitEvent(b, in_a), 0);
    CHECK_EQ(aclrtMemsetAsync(x, kSize, 2, kSize, b), 0);
    CHECK_EQ(aclrtRecordEvent(in_b, b), 0);
    CHECK_EQ(aclrtStreamWaitEvent(c, in_b), 0);
    CHECK_EQ(aclrtMemsetAsync(x, 1, 3, 1, c), 0);
    CHECK_EQ(aclrtResetEvent(in_b, c), 0);
    CHECK_EQ(state(a), ACL_STREAM_STATUS_NOT_READY);
    CHECK_EQ(state(b), ACL_STREAM_STATUS_NOT_READY);
    CHECK_EQ(waited(in_a), ACL_EVENT_WAIT_STATUS_NOT_READY);
    CHECK_EQ(recorded(in_b), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    CHECK_FAILS(
        aclrtSynchronizeStreamWithTimeout(c, 5), 507046,
        "aclrtSynchronizeStreamWithTimeout: timed out: the stream is still working after 5 ms");
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(b, 0), 507046);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(b, -2), 107000);
    CHECK_FAILS(aclrtSynchronizeEventWithTimeout(in_a, 5), 507047,
                "timed out: the event was not reached within 5 ms");
    CHECK_EQ(aclrtSynchronizeEventWithTimeout(in_a, 0), 507047);
    CHECK_EQ(aclrtSynchronizeEventWithTimeout(in_a, -2), 107000);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(5), 507046);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(0), 507046);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(-2), 107000);
    CHECK_EQ(aclrtDestroyEvent(in_a), 0);  // b goes on waiting for it
    CHECK_EQ(x[0], 0);
    gate.open();
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(c, 60000), 0);
    CHECK_EQ(x[0], 3);
    CHECK_EQ(x[kSize - 1], 2);
  }
  CHECK_EQ(aclrtSynchronizeStream(c), 0);
  CHECK_EQ(state(c), ACL_STREAM_STATUS_COMPLETE);
  CHECK_EQ(recorded(in_b), ACL_EVENT_RECORDED_STATUS_NOT_READY);  // reset
  CHECK_EQ(waited(in_b), ACL_EVENT_WAIT_STATUS_COMPLETE);
  CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(-1), 0);
  CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(0), 0);
  CHECK_EQ(aclrtFreeWithDevSync(x), 0);
  CHECK_EQ(aclrtDestroyEvent(in_b), 0);
  for (aclrtStream stream : {a, b, c}) CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// The next synchronisation reports a wait that timed out, once; the work behind it ran all the
// same.
void late_waits() {
  aclrtStream a, b;
  aclrtEvent event, after;
  char* x;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(&a), 0);
  CHECK_EQ(aclrtCreateStream(&b), 0);
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  CHECK_EQ(aclrtCreateEvent(&after), 0);
  CHECK_EQ(aclrtMallocHost(reinterpret_cast<void**>(&x), 1), 0);
  {
    Gate gate(a);
    CHECK_EQ(aclrtRecordEvent(event, a), 0);
    CHECK_FAILS(aclrtStreamWaitEventWithTimeout(b, event, -1), 107000,
                "timeout must be at least 0 s");
    CHECK_EQ(aclrtSetOpWaitTimeout(1), 0);
    CHECK_EQ(aclrtStreamWaitEvent(b, event), 0);
    CHECK_EQ(aclrtSetOpWaitTimeout(0), 0);
    CHECK_EQ(aclrtMemsetAsync(x, 1, 7, 1, b), 0);
    CHECK_EQ(aclrtRecordEvent(after, b), 0);
    CHECK_FAILS(aclrtSynchronizeEvent(after), 107019,
                "aclrtSynchronizeEvent: aclrtStreamWaitEvent timed out after 1 s");
    CHECK_FAILS(aclrtSynchronizeStream(b), 107019, "Wait_Timeout(EE1002): aclrtSynchronizeStream");
    CHECK_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 107019);
    CHECK_EQ(aclrtSynchronizeStream(b), 0);
    CHECK_EQ(*x, 7);
    CHECK_EQ(aclrtStreamWaitEventWithTimeout(b, event, 1), 0);
    CHECK_EQ(aclrtSynchronizeStreamWithTimeout(b, -1), 107019);
    CHECK_EQ(aclrtStreamWaitEventWithTimeout(b, event, 1), 0);
    CHECK_EQ(aclrtStreamWaitEventWithTimeout(b, event, 60), 0);
  }
  CHECK_EQ(aclrtSynchronizeDevice(), 0);
  CHECK_EQ(aclrtFreeHost(x), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtDestroyEvent(after), 0);
  CHECK_EQ(aclrtDestroyStream(a), 0);
  CHECK_EQ(aclrtDestroyStream(b), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// A stream can be destroyed by force while it waits, and nothing waits for what it will not reach.
void destroyed_by_force() {
  aclrtStream a, b, c;
  aclrtEvent in_a, in_b;
  uint64_t time;
  CHECK_EQ(aclrtSetDevice(0), 0);
  for (aclrtStream* stream : {&a, &b, &c}) CHECK_EQ(aclrtCreateStream(stream), 0);
  CHECK_EQ(aclrtCreateEvent(&in_a), 0);
  CHECK_EQ(aclrtCreateEvent(&in_b), 0);
  {
    Gate gate(a);
    CHECK_EQ(aclrtRecordEvent(in_a, a), 0);
    CHECK_EQ(aclrtStreamWaitEvent(b, in_a), 0);
    CHECK_EQ(aclrtRecordEvent(in_b, b), 0);
    CHECK_EQ(aclrtStreamWaitEvent(c, in_b), 0);
    CHECK_EQ(aclrtDestroyStreamForce(b), 0);
    CHECK_EQ(aclrtSynchronizeStream(c), 0);
    CHECK_EQ(waited(in_a), ACL_EVENT_WAIT_STATUS_COMPLETE);
    CHECK_EQ(aclrtSynchronizeEvent(in_b), 0);
    CHECK_FAILS(aclrtEventGetTimestamp(in_b, &time), 107006, "its stream was destroyed by force");
  }
  CHECK_EQ(aclrtDestroyEvent(in_a), 0);
  CHECK_EQ(aclrtDestroyEvent(in_b), 0);
  CHECK_EQ(aclrtDestroyStream(a), 0);
  CHECK_EQ(aclrtDestroyStream(c), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// Streams that have nothing else to do wait for one event. Some waits end before it comes, by force
// or by a deadline; the others end with the event all the same.
void many_wait_for_one() {
  constexpr int kStreams = 9;
  aclrtStream held;
  std::vector<aclrtStream> streams(kStreams);
  aclrtEvent event;
  char* x;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(&held), 0);
  for (aclrtStream& stream : streams) CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  CHECK_EQ(aclrtMallocHost(reinterpret_cast<void**>(&x), kStreams), 0);
  for (int round = 0; round < 2; ++round) {  // the second finds workers that sleep
    CHECK_EQ(aclrtMemset(x, kStreams, 0, kStreams), 0);
    Gate gate(held);
    CHECK_EQ(aclrtRecordEvent(event, held), 0);
    for (int i = 0; i < kStreams; ++i) {
      const int32_t seconds = i % 3 == 1 ? 1 : i % 3 == 2 ? 60 : 0;
      CHECK_EQ(aclrtStreamWaitEventWithTimeout(streams[i], event, seconds), 0);
      if (i % 2 == 0) CHECK_EQ(aclrtMemsetAsync(x + i, 1, 1, 1, streams[i]), 0);
      CHECK_EQ(state(streams[i]), ACL_STREAM_STATUS_NOT_READY);
    }
    for (const int i : {3, 5, 7}) {  // in the middle, at the end and the beginning of the list
      if (i == 7) {
        CHECK_EQ(aclrtDestroyStream(streams[i]), 0);  // returns when its second is over
      } else {
        CHECK_EQ(aclrtDestroyStreamForce(streams[i]), 0);
      }
      CHECK_EQ(aclrtCreateStream(&streams[i]), 0);
    }
    for (int i = 1; i < kStreams; i += 3) {
      CHECK_EQ(aclrtSynchronizeStream(streams[i]), i == 7 ? 0 : 107019);
    }
    CHECK_EQ(x[4], 1);
    for (const int i : {0, 2, 6, 8}) {
      CHECK_EQ(x[i], 0);
      CHECK_EQ(state(streams[i]), ACL_STREAM_STATUS_NOT_READY);
    }
    CHECK_EQ(waited(event), ACL_EVENT_WAIT_STATUS_NOT_READY);
    gate.open();
    CHECK_EQ(aclrtSynchronizeDevice(), 0);
    for (const int i : {0, 2, 4, 6, 8}) CHECK_EQ(x[i], 1);
    CHECK_EQ(waited(event), ACL_EVENT_WAIT_STATUS_COMPLETE);
  }
  CHECK_EQ(aclrtFreeHost(x), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtDestroyStream(held), 0);
  for (aclrtStream stream : streams) CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// A pause, its deadline, the event and the end of a stream race: all end, in every order.
void pauses_that_race() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  for (int round = 0; round < 300; ++round) {
    aclrtStream a, b;
    aclrtEvent event;
    CHECK_EQ(aclrtCreateStream(&a), 0);
    CHECK_EQ(aclrtCreateStream(&b), 0);
    CHECK_EQ(aclrtCreateEvent(&event), 0);
    {
      Gate gate(a);
      CHECK_EQ(aclrtRecordEvent(event, a), 0);
      CHECK_EQ(aclrtStreamWaitEventWithTimeout(b, event, round % 2 == 0 ? 60 : 0), 0);
      std::thread other([&] { gate.open(); });
      if (round % 3 == 0) CHECK_EQ(aclrtDestroyStreamForce(b), 0);
      if (round % 3 == 1) CHECK_EQ(aclrtDestroyStream(b), 0);
      if (round % 3 == 2) CHECK_EQ(aclrtSynchronizeDevice(), 0);
      other.join();
    }
    CHECK_EQ(waited(event), ACL_EVENT_WAIT_STATUS_COMPLETE);
    CHECK_EQ(aclrtDestroyEvent(event), 0);
    CHECK_EQ(aclrtDestroyStream(a), 0);
    if (round % 3 == 2) CHECK_EQ(aclrtDestroyStream(b), 0);
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// Eight streams in a ring pass a counter on through 2000 events, from four threads.
void ring() {
  constexpr int kStreams = 8, kRounds = 250;
  std::vector<aclrtStream> streams(kStreams);
  aclrtEvent event;
  int64_t* values;
  CHECK_EQ(aclrtSetDevice(0), 0);
  for (aclrtStream& stream : streams) CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), 0);
  const size_t bytes = sizeof(int64_t) * (kStreams * kRounds + 1);
  CHECK_EQ(aclrtMalloc(reinterpret_cast<void**>(&values), bytes, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMemset(values, bytes, 0, bytes), 0);
  values[0] = 42;
  {
    Gate gate(streams[0]);
    for (int i = 0; i < kStreams * kRounds; ++i) {
      const aclrtStream own = streams[static_cast<size_t>(i % kStreams)];
      if (i > 0) CHECK_EQ(aclrtStreamWaitEvent(own, event), 0);
      CHECK_EQ(aclrtMemcpyAsync(values + i + 1, 8, values + i, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, own),
               0);
      CHECK_EQ(aclrtRecordEvent(event, own), 0);
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] { CHECK_EQ(aclrtSynchronizeEvent(event), 0); });
    }
    gate.open();
    for (std::thread& thread : threads) thread.join();
    CHECK_EQ(values[kStreams * kRounds], 42);
  }
  CHECK_EQ(aclrtFree(values), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  for (aclrtStream stream : streams) CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

}  // namespace

int main() {
  waits_across_streams();
  late_waits();
  destroyed_by_force();
  many_wait_for_one();
  pauses_that_race();
  ring();
  return check_result();
}
