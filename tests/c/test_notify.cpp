// SPDX-License-Identifier: Apache-2.0
// Notifications between streams, values in memory, functions of the host as tasks.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "check.h"
#include "gate.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

void notifications() {
  aclrtNotify notify = nullptr, other = nullptr;
  aclrtStream a = nullptr, b = nullptr;
  char* p = nullptr;
  CHECK_EQ(aclrtMalloc(reinterpret_cast<void**>(&p), 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMemset(p, 64, 0, 64), 0);
  CHECK_EQ(aclrtCreateStream(&a), 0);
  CHECK_EQ(aclrtCreateStream(&b), 0);
  CHECK_EQ(aclrtCreateNotify(&notify, ACL_NOTIFY_DEFAULT), 0);
  CHECK_EQ(aclrtCreateNotify(&other, ACL_NOTIFY_DEVICE_USE_ONLY), 0);
  uint32_t first = 0, second = 0;
  CHECK_EQ(aclrtGetNotifyId(notify, &first), 0);
  CHECK_EQ(aclrtGetNotifyId(other, &second), 0);
  CHECK(first != second);

  // The wait comes first.
  CHECK_EQ(aclrtWaitAndResetNotify(notify, b, 0), 0);
  CHECK_EQ(aclrtMemsetAsync(p, 64, 2, 1, b), 0);
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  CHECK_EQ(aclrtStreamQuery(b, &status), 0);
  CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  CHECK_EQ(p[0], 0);
  CHECK_EQ(aclrtRecordNotify(notify, a), 0);
  CHECK_EQ(aclrtSynchronizeStream(b), 0);
  CHECK_EQ(p[0], 2);

  // The record comes first, and is consumed: a second wait waits.
  CHECK_EQ(aclrtRecordNotify(notify, a), 0);
  CHECK_EQ(aclrtSynchronizeStream(a), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, b, 0), 0);
  CHECK_EQ(aclrtSynchronizeStream(b), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, b, 1), 0);
  CHECK_FAILS(aclrtSynchronizeStream(b), 107020, "aclrtWaitAndResetNotify timed out after 1 s");

  // It is a flag, not a counter: of two records before a wait one is left.
  CHECK_EQ(aclrtRecordNotify(notify, nullptr), 0);
  CHECK_EQ(aclrtRecordNotify(notify, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, a, 0), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, a, 1), 0);
  CHECK_EQ(aclrtSynchronizeStream(a), 107020);

  // Reset on the host.
  CHECK_EQ(aclrtRecordNotify(notify, a), 0);
  CHECK_EQ(aclrtSynchronizeStream(a), 0);
  aclrtNotify both[] = {notify, other}, wrong[] = {notify, foreign};
  CHECK_EQ(aclrtNotifyBatchReset(both, 2), 0);
  CHECK_EQ(aclrtNotifyBatchReset(wrong, 2), 107017);
  CHECK_EQ(aclrtNotifyBatchReset(nullptr, 2), 100000);
  CHECK_EQ(aclrtNotifyBatchReset(both, 0), 100000);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, b, 1), 0);
  CHECK_EQ(aclrtSynchronizeStream(b), 107020);

  CHECK_FAILS(aclrtCreateNotify(nullptr, 0), 100000, "notify must not be NULL");
  CHECK_FAILS(aclrtCreateNotify(&notify, 2), 100000, "flag must be 0 or 1, but got 2");
  CHECK_FAILS(aclrtRecordNotify(nullptr, a), 100000, "notify must not be NULL");
  CHECK_EQ(aclrtWaitAndResetNotify(nullptr, a, 0), 100000);
  CHECK_EQ(aclrtGetNotifyId(nullptr, &first), 100000);
  CHECK_EQ(aclrtGetNotifyId(notify, nullptr), 100000);
  CHECK_EQ(aclrtDestroyNotify(nullptr), 100000);
  CHECK_FAILS(aclrtRecordNotify(foreign, a), 107017, "destroyed or never created");
  CHECK_EQ(aclrtWaitAndResetNotify(foreign, a, 0), 107017);
  CHECK_EQ(aclrtRecordNotify(notify, foreign), 107017);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, foreign, 0), 107017);

  // Destroyed while a stream waits: the task keeps what it needs.
  CHECK_EQ(aclrtWaitAndResetNotify(other, a, 1), 0);
  CHECK_EQ(aclrtDestroyNotify(other), 0);
  CHECK_EQ(aclrtDestroyNotify(other), 107017);
  CHECK_EQ(aclrtSynchronizeStream(a), 107020);

  // A stream that is destroyed by force ends its wait.
  CHECK_EQ(aclrtWaitAndResetNotify(notify, a, 0), 0);
  CHECK_EQ(aclrtDestroyStreamForce(a), 0);
  CHECK_EQ(aclrtDestroyNotify(notify), 0);
  CHECK_EQ(aclrtDestroyStream(b), 0);
  CHECK_EQ(aclrtFree(p), 0);
}

void values() {
  aclrtStream stream = nullptr, writer = nullptr;
  uint64_t* p = nullptr;
  CHECK_EQ(aclrtMalloc(reinterpret_cast<void**>(&p), 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMemset(p, 64, 0, 64), 0);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtCreateStream(&writer), 0);
  CHECK_EQ(aclrtValueWrite(p, 7, 0, writer), 0);
  CHECK_EQ(aclrtSynchronizeStream(writer), 0);
  CHECK_EQ(p[0], uint64_t{7});

  struct Wait {
    uint32_t flag;
    uint64_t before, value, after;
  };
  const Wait waits[] = {{ACL_STREAM_WAIT_VALUE_GEQ, 7, 8, 9},
                        {ACL_STREAM_WAIT_VALUE_EQ, 8, 9, 9},
                        {ACL_STREAM_WAIT_VALUE_AND, 8, 3, 2},
                        {ACL_STREAM_WAIT_VALUE_NOR, ~uint64_t{0}, 0, 1}};
  for (const Wait& wait : waits) {
    CHECK_EQ(aclrtValueWrite(p, wait.before, 0, writer), 0);
    CHECK_EQ(aclrtSynchronizeStream(writer), 0);
    CHECK_EQ(aclrtValueWait(p, wait.value, wait.flag, stream), 0);
    CHECK_EQ(aclrtValueWrite(p + 1, wait.flag, 0, stream), 0);
    aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
    CHECK_EQ(aclrtStreamQuery(stream, &status), 0);
    CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY);
    CHECK_EQ(aclrtValueWrite(p, wait.after, 0, writer), 0);
    CHECK_EQ(aclrtSynchronizeStream(stream), 0);
    CHECK_EQ(p[1], uint64_t{wait.flag});
    CHECK_EQ(aclrtValueWait(p, wait.value, wait.flag, stream), 0);  // holds already
    CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  }
  // A copy may write the value too, and force ends the wait.
  const uint64_t five = 5;
  CHECK_EQ(aclrtValueWait(p, 5, ACL_STREAM_WAIT_VALUE_EQ, stream), 0);
  CHECK_EQ(aclrtMemcpyAsync(p, 8, &five, 8, ACL_MEMCPY_HOST_TO_DEVICE, writer), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(aclrtValueWait(p, 6, ACL_STREAM_WAIT_VALUE_EQ, stream), 0);
  CHECK_EQ(aclrtStreamAbort(stream), 0);
  CHECK_EQ(aclrtValueWait(p, 6, ACL_STREAM_WAIT_VALUE_EQ, stream), 0);
  CHECK_EQ(aclrtDestroyStreamForce(stream), 0);

  CHECK_FAILS(aclrtValueWrite(nullptr, 0, 0, writer), 100000, "devAddr must not be NULL");
  CHECK_FAILS(aclrtValueWrite(reinterpret_cast<char*>(p) + 4, 0, 0, writer), 107000,
              "devAddr must be a multiple of 8");
  CHECK_FAILS(aclrtValueWrite(p, 0, 1, writer), 107000, "flag must be 0, but got 1");
  CHECK_EQ(aclrtValueWrite(p, 0, 0, foreign), 107017);
  CHECK_EQ(aclrtValueWrite(p + 11, 0, 0, writer), 0);  // the spare unit of the allocation
  uint64_t own = 0;
  CHECK_FAILS(aclrtValueWrite(&own, 0, 0, writer), 107000, "is not memory of acl: allocate it");
  CHECK_EQ(aclrtValueWait(&own, 0, 0, writer), 107000);
  CHECK_EQ(aclrtValueWait(nullptr, 0, 0, writer), 100000);
  CHECK_FAILS(aclrtValueWait(p, 0, 4, writer), 107000, "flag must be in [0, 3], but got 4");
  CHECK_EQ(aclrtValueWait(p, 0, 0, foreign), 107017);
  CHECK_EQ(aclrtDestroyStream(writer), 0);
  CHECK_EQ(aclrtFree(p), 0);
}

struct Seen {
  std::atomic<int> order{0};
  int at = -1;
  std::thread::id thread;
};

void host_functions() {
  aclrtStream stream = nullptr;
  char* p = nullptr;
  CHECK_EQ(aclrtMalloc(reinterpret_cast<void**>(&p), 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  static char* memory;
  memory = p;
  Seen seen;
  const auto run = [](void* given) {
    auto* own = static_cast<Seen*>(given);
    own->at = memory[0];
    memory[1] = 8;
    own->thread = std::this_thread::get_id();
  };
  CHECK_EQ(aclrtMemsetAsync(p, 64, 7, 64, stream), 0);
  CHECK_EQ(aclrtLaunchHostFunc(stream, run, &seen), 0);
  CHECK_EQ(aclrtMemcpyAsync(p + 2, 1, p + 1, 1, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(seen.at, 7);
  CHECK_EQ(p[2], 8);
  CHECK(seen.thread != std::this_thread::get_id());
  CHECK_FAILS(aclrtLaunchHostFunc(stream, nullptr, nullptr), 100000, "fn must not be NULL");
  CHECK_EQ(aclrtLaunchHostFunc(foreign, run, &seen), 107017);

  // Threads for CPU operators of models, which never come.
  const auto self = static_cast<uint64_t>(pthread_self());
  CHECK_FAILS(aclrtProcessHostFunc(1), 107012, "this thread is not subscribed");
  CHECK_EQ(aclrtSubscribeHostFunc(self, stream), 0);
  CHECK_EQ(aclrtSubscribeHostFunc(self, stream), 107011);
  CHECK_FAILS(aclrtProcessHostFunc(1), 507012, "timed out: no host function within 1 ms");
  CHECK_EQ(aclrtProcessHostFunc(-2), 107000);
  CHECK_EQ(aclrtSubscribeHostFunc(self, nullptr), 100000);
  CHECK_EQ(aclrtSubscribeHostFunc(self, foreign), 107017);
  CHECK_EQ(aclrtUnSubscribeHostFunc(self + 1, stream), 107012);
  std::thread ends([&] {
    CHECK_EQ(aclrtSetDevice(0), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK_EQ(aclrtUnSubscribeHostFunc(self, stream), 0);
    CHECK_EQ(aclrtResetDevice(0), 0);
  });
  CHECK_FAILS(aclrtProcessHostFunc(-1), 107012, "was unsubscribed while it waited");
  ends.join();
  CHECK_EQ(aclrtUnSubscribeHostFunc(self, stream), 107012);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtLaunchHostFunc(stream, run, &seen), 107017);
  CHECK_EQ(aclrtFree(p), 0);
}

void event_flags() {
  aclrtEvent event = nullptr, other = nullptr;
  uint32_t first = 0, second = 0;
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  CHECK_EQ(aclrtCreateEvent(&other), 0);
  CHECK_EQ(aclrtGetEventId(event, &first), 0);
  CHECK_EQ(aclrtGetEventId(other, &second), 0);
  CHECK(first != second);
  CHECK_EQ(aclrtGetEventId(event, nullptr), 100000);
  CHECK_EQ(aclrtGetEventId(foreign, &first), 107017);
  CHECK_EQ(aclrtRecordEventWithFlag(event, nullptr, ACL_EVENT_RECORD_DEFAULT), 0);
  CHECK_EQ(aclrtStreamWaitEventWithFlag(nullptr, event, 1, ACL_EVENT_WAIT_DEFAULT), 0);
  CHECK_EQ(aclrtSynchronizeEvent(event), 0);
  CHECK_FAILS(aclrtRecordEventWithFlag(event, nullptr, 1), 107029, "needs a stream that is being");
  CHECK_EQ(aclrtStreamWaitEventWithFlag(nullptr, event, 0, 1), 107029);
  CHECK_FAILS(aclrtRecordEventWithFlag(event, nullptr, 2), 100000,
              "flag must be 0 or 1, but got 2");
  CHECK_EQ(aclrtStreamWaitEventWithFlag(nullptr, event, 0, 2), 100000);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtRecordEventWithFlag(event, nullptr, 0), 107017);
  CHECK_EQ(aclrtDestroyEvent(other), 0);
  uint64_t actual = 0;
  CHECK_EQ(aclrtSetOpExecuteTimeOut(5), 0);
  CHECK_EQ(aclrtSetOpExecuteTimeOutV2(5, &actual), 0);
  CHECK_EQ(actual, UINT64_MAX);
  CHECK_EQ(aclrtSetOpExecuteTimeOutV2(5, nullptr), 100000);
}

}  // namespace

int main() {
  aclrtNotify notify = nullptr;
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 107002);
  CHECK_EQ(aclrtSetDevice(0), 0);
  notifications();
  values();
  host_functions();
  event_flags();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}
