// SPDX-License-Identifier: Apache-2.0
// Events: the call that made them decides what they can do; points in time.
#include <thread>

#include "aclnn/aclnn_base.h"
#include "check.h"
#include "gate.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

aclrtEventRecordedStatus recorded(aclrtEvent event) {
  auto status = static_cast<aclrtEventRecordedStatus>(-1);
  CHECK_EQ(aclrtQueryEventStatus(event, &status), 0);
  return status;
}

void handles() {
  aclrtEvent event = foreign;
  aclrtEventStatus old;
  aclrtEventRecordedStatus now;
  aclrtEventWaitStatus waits;
  float ms;
  uint64_t time;
  CHECK_FAILS(aclrtCreateEvent(&event), 107002, "aclrtCreateEvent: no device is set");
  CHECK_EQ(event, foreign);
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_FAILS(aclrtCreateEvent(nullptr), 100000, "aclrtCreateEvent: event must not be NULL");
  CHECK_EQ(aclrtCreateEventWithFlag(nullptr, 1), 100000);
  CHECK_EQ(aclrtCreateEventExWithFlag(nullptr, 1), 100000);
  CHECK_FAILS(aclrtCreateEventWithFlag(&event, 0x100), 107000,
              "aclrtCreateEventWithFlag: flag must only have bits of 0x1b, but got 0x100");
  CHECK_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_DEVICE_USE_ONLY), 107000);
  CHECK_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_EXTERNAL | ACL_EVENT_SYNC), 107000);
  CHECK_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC | ACL_EVENT_SYNC), 107000);
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  CHECK_EQ(aclrtQueryEventStatus(event, nullptr), 100000);
  CHECK_EQ(aclrtQueryEvent(event, nullptr), 100000);
  CHECK_EQ(aclrtQueryEventWaitStatus(event, nullptr), 100000);
  CHECK_EQ(aclrtEventElapsedTime(nullptr, event, event), 100000);
  CHECK_EQ(aclrtEventGetTimestamp(event, nullptr), 100000);
  CHECK_EQ(aclrtRecordEvent(event, foreign), 107017);
  CHECK_EQ(aclrtStreamWaitEvent(foreign, event), 107017);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  for (const auto& [bad, code] :
       {std::pair<aclrtEvent, int>(nullptr, 100000), {foreign, 107017}, {event, 107017}}) {
    CHECK_EQ(aclrtDestroyEvent(bad), code);
    CHECK_EQ(aclrtRecordEvent(bad, nullptr), code);
    CHECK_EQ(aclrtResetEvent(bad, nullptr), code);
    CHECK_EQ(aclrtStreamWaitEvent(nullptr, bad), code);
    CHECK_EQ(aclrtStreamWaitEventWithTimeout(nullptr, bad, 1), code);
    CHECK_EQ(aclrtQueryEventStatus(bad, &now), code);
    CHECK_EQ(aclrtQueryEvent(bad, &old), code);
    CHECK_EQ(aclrtQueryEventWaitStatus(bad, &waits), code);
    CHECK_EQ(aclrtSynchronizeEvent(bad), code);
    CHECK_EQ(aclrtSynchronizeEventWithTimeout(bad, 1), code);
    CHECK_EQ(aclrtEventElapsedTime(&ms, bad, bad), code);
    CHECK_EQ(aclrtEventGetTimestamp(bad, &time), code);
  }
  CHECK_FAILS(aclrtEventElapsedTime(&ms, event, event), 107017,
              "aclrtEventElapsedTime: startEvent 0x");
  CHECK_EQ(aclrtResetDevice(0), 0);
}

void makers() {
  aclrtEvent plain, sync, time, ex;
  aclrtEventStatus old;
  aclrtEventWaitStatus waits;
  uint64_t us;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateEvent(&plain), 0);
  CHECK_EQ(aclrtCreateEventWithFlag(&sync, ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS), 0);
  CHECK_EQ(aclrtCreateEventWithFlag(&time, ACL_EVENT_TIME_LINE), 0);
  CHECK_EQ(aclrtCreateEventExWithFlag(&ex, ACL_EVENT_SYNC), 0);

  CHECK_EQ(recorded(plain), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  CHECK_EQ(recorded(sync), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  CHECK_EQ(recorded(ex), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  CHECK_EQ(aclrtQueryEvent(plain, &old), 0);
  CHECK_EQ(old, ACL_EVENT_STATUS_NOT_READY);
  CHECK_FAILS(aclrtEventGetTimestamp(plain, &us), 107006, "event was never recorded");
  for (aclrtEvent event : {plain, sync, time, ex}) {
    CHECK_EQ(aclrtSynchronizeEvent(event), 0);  // nothing to wait for
    CHECK_EQ(aclrtRecordEvent(event, nullptr), 0);
    CHECK_EQ(recorded(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    CHECK_EQ(aclrtSynchronizeEvent(event), 0);
  }
  CHECK_EQ(aclrtQueryEvent(plain, &old), 0);
  CHECK_EQ(old, ACL_EVENT_STATUS_COMPLETE);
  CHECK_FAILS(aclrtQueryEvent(ex, &old), 107000,
              "aclrtQueryEvent: an event of aclrtCreateEventExWithFlag");
  CHECK_EQ(aclrtQueryEventWaitStatus(ex, &waits), 107000);

  CHECK_EQ(aclrtStreamWaitEvent(nullptr, plain), 0);
  CHECK_EQ(aclrtStreamWaitEvent(nullptr, sync), 0);
  CHECK_EQ(aclrtStreamWaitEvent(nullptr, ex), 0);
  CHECK_FAILS(aclrtStreamWaitEvent(nullptr, time), 107000,
              "event was created without ACL_EVENT_SYNC: its flag is 0x8");
  CHECK_EQ(aclrtEventGetTimestamp(plain, &us), 0);
  CHECK_EQ(aclrtEventGetTimestamp(time, &us), 0);
  CHECK_FAILS(aclrtEventGetTimestamp(sync, &us), 107006,
              "event was created without ACL_EVENT_TIME_LINE");
  CHECK_EQ(aclrtEventGetTimestamp(ex, &us), 107006);

  CHECK_EQ(aclrtResetEvent(sync, nullptr), 0);
  CHECK_EQ(recorded(sync), ACL_EVENT_RECORDED_STATUS_NOT_READY);
  for (aclrtEvent event : {plain, time, ex}) {
    CHECK_FAILS(aclrtResetEvent(event, nullptr), 107000,
                "only an event of aclrtCreateEventWithFlag with ACL_EVENT_SYNC can be reset");
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
  for (aclrtEvent event : {plain, sync, time, ex}) CHECK_EQ(aclrtDestroyEvent(event), 0);
}

void times() {
  aclrtEvent start, end;
  float ms = -1;
  uint64_t first, second;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateEvent(&start), 0);
  CHECK_EQ(aclrtCreateEventExWithFlag(&end, ACL_EVENT_TIME_LINE), 0);
  CHECK_FAILS(aclrtEventElapsedTime(&ms, start, end), 107006,
              "aclrtEventElapsedTime: startEvent was never recorded");
  CHECK_EQ(aclrtRecordEvent(start, nullptr), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  {
    Gate gate(nullptr);
    CHECK_EQ(aclrtRecordEvent(end, nullptr), 0);
    CHECK_FAILS(aclrtEventElapsedTime(&ms, start, end), 107006, "endEvent was not reached yet");
  }
  CHECK_EQ(aclrtEventElapsedTime(&ms, start, end), 0);
  CHECK(ms >= 2);
  CHECK_EQ(aclrtEventGetTimestamp(start, &first), 0);
  CHECK_EQ(aclrtEventGetTimestamp(end, &second), 0);
  CHECK(second - first >= 2000);
  CHECK(ms * 1000 >= static_cast<float>(second - first) - 2 &&
        ms * 1000 <= static_cast<float>(second - first) + 2);
  CHECK_FAILS(aclrtEventElapsedTime(&ms, end, start), 107007, "ns before startEvent");
  CHECK_EQ(aclrtEventElapsedTime(&ms, end, end), 0);
  CHECK_EQ(ms, 0.0f);
  CHECK_EQ(aclrtDestroyEvent(start), 0);
  CHECK_EQ(aclrtDestroyEvent(end), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// A wait takes the newest point at the time of the call; a later record does not change it.
void recorded_again() {
  aclrtStream a, b;
  aclrtEvent event;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(&a), 0);
  CHECK_EQ(aclrtCreateStream(&b), 0);
  CHECK_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), 0);
  {
    Gate gate(a);
    CHECK_EQ(aclrtRecordEvent(event, b), 0);
    CHECK_EQ(aclrtStreamWaitEvent(b, event), 0);
    CHECK_EQ(recorded(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
    CHECK_EQ(aclrtRecordEvent(event, a), 0);
    CHECK_EQ(recorded(event), ACL_EVENT_RECORDED_STATUS_NOT_READY);
    CHECK_EQ(aclrtSynchronizeStream(b), 0);
  }
  CHECK_EQ(recorded(event), ACL_EVENT_RECORDED_STATUS_COMPLETE);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtDestroyStream(a), 0);
  CHECK_EQ(aclrtDestroyStream(b), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

}  // namespace

int main() {
  handles();
  makers();
  times();
  recorded_again();
  return check_result();
}
