// SPDX-License-Identifier: Apache-2.0
// Callbacks run in order on the subscribed thread, whether the stream waits for them or not;
// subscriptions end.
#include <pthread.h>

#include <atomic>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "check.h"
#include "gate.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;
const auto self = [] { return static_cast<uint64_t>(pthread_self()); };

void nothing(void*) {}
void add(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

void arguments() {
  aclrtStream stream;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_FAILS(aclrtProcessReport(1), 100035, "aclrtProcessReport: this thread is not subscribed");
  CHECK_FAILS(aclrtProcessReport(0), 107000, "timeout must be -1 (no limit) or at least 1 ms");
  CHECK_EQ(aclrtProcessReport(-2), 107000);
  CHECK_FAILS(aclrtLaunchCallback(nothing, nullptr, ACL_CALLBACK_BLOCK, stream), 100034,
              "no thread is subscribed to the stream; call aclrtSubscribeReport first");
  CHECK_FAILS(aclrtUnSubscribeReport(self(), stream), 100034, "no thread is subscribed");
  CHECK_EQ(aclrtSubscribeReport(self(), foreign), 107017);
  CHECK_EQ(aclrtUnSubscribeReport(self(), foreign), 107017);
  CHECK_EQ(aclrtSubscribeReport(self(), stream), 0);
  CHECK_FAILS(aclrtSubscribeReport(self() + 1, stream), 100033,
              "is already subscribed to the stream");
  CHECK_FAILS(aclrtUnSubscribeReport(self() + 1, stream), 100035,
              "threadId must be the thread subscribed to stream");
  CHECK_EQ(aclrtLaunchCallback(nullptr, nullptr, ACL_CALLBACK_BLOCK, stream), 100000);
  CHECK_FAILS(aclrtLaunchCallback(nothing, nullptr, static_cast<aclrtCallbackBlockType>(2), stream),
              100000, "blockType must be 0 or 1, but got 2");
  CHECK_EQ(aclrtLaunchCallback(nothing, nullptr, ACL_CALLBACK_BLOCK, foreign), 107017);
  CHECK_FAILS(aclrtProcessReport(2), 100036, "timed out: no callback within 2 ms");
  CHECK_EQ(aclrtUnSubscribeReport(self(), stream), 0);
  CHECK_EQ(aclrtProcessReport(1), 100035);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

struct Step {
  std::vector<int>* order;
  int number;
  static void run(void* own) {
    auto* step = static_cast<Step*>(own);
    step->order->push_back(step->number);
  }
};

// Two streams share one thread; a blocking callback sees memory as the stream left it.
void in_order() {
  aclrtStream stream;
  std::vector<int> order;
  std::vector<Step> steps;
  for (int i = 0; i < 20; ++i) steps.push_back({&order, i});
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtSubscribeReport(self(), stream), 0);
  CHECK_EQ(aclrtSubscribeReport(self(), nullptr), 0);
  for (Step& step : steps) {
    const auto block = step.number % 3 == 0 ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK;
    CHECK_EQ(aclrtLaunchCallback(Step::run, &step, block, stream), 0);
  }
  std::atomic<int> other = 0;
  CHECK_EQ(aclrtLaunchCallback(add, &other, ACL_CALLBACK_NO_BLOCK, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStreamWithTimeout(stream, 2), 507046);  // this thread has not run them
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);  // no stream waits for its callback
  for (int i = 0; i < 21; ++i) CHECK_EQ(aclrtProcessReport(-1), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(other.load(), 1);
  for (int i = 0; i < 20; ++i) CHECK_EQ(order[static_cast<size_t>(i)], i);
  CHECK_EQ(aclrtUnSubscribeReport(self(), stream), 0);
  CHECK_EQ(aclrtUnSubscribeReport(self(), nullptr), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

struct Inside {
  aclrtStream stream;
  aclrtEvent event;
  int code = -1, event_code = -1, device_code = -1, destroy_code = -1;

  // A callback cannot wait for the stream that waits for it.
  static void run(void* own) {
    auto* now = static_cast<Inside*>(own);
    CHECK_EQ(aclrtSetDevice(0), 0);
    now->code = aclrtSynchronizeStream(now->stream);
    now->event_code = aclrtSynchronizeEvent(now->event);
    now->device_code = aclrtSynchronizeDevice();
    now->destroy_code = aclrtDestroyStream(now->stream);
    CHECK_EQ(aclrtResetDevice(0), 0);
  }
};

void from_within() {
  Inside inside;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(&inside.stream), 0);
  CHECK_EQ(aclrtCreateEvent(&inside.event), 0);
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> id = 0;
  std::thread thread([&] {
    id = self();
    while (!stop) (void)aclrtProcessReport(5);
  });
  while (id == 0) std::this_thread::yield();
  CHECK_EQ(aclrtSubscribeReport(id, inside.stream), 0);
  {
    Gate gate(nullptr);  // both launch and record have to wait in the stream, behind this
    aclrtEvent opened;
    CHECK_EQ(aclrtCreateEvent(&opened), 0);
    CHECK_EQ(aclrtRecordEvent(opened, nullptr), 0);
    CHECK_EQ(aclrtStreamWaitEvent(inside.stream, opened), 0);
    CHECK_EQ(aclrtLaunchCallback(Inside::run, &inside, ACL_CALLBACK_BLOCK, inside.stream), 0);
    CHECK_EQ(aclrtRecordEvent(inside.event, inside.stream), 0);
    CHECK_EQ(aclrtDestroyEvent(opened), 0);
  }
  CHECK_EQ(aclrtSynchronizeStream(inside.stream), 0);
  CHECK_EQ(inside.code, 107000);
  CHECK_EQ(inside.event_code, 107000);
  CHECK_EQ(inside.device_code, 107000);
  CHECK_EQ(inside.destroy_code, 107000);
  CHECK_EQ(aclrtUnSubscribeReport(id, inside.stream), 0);
  stop = true;
  thread.join();
  CHECK_EQ(aclrtDestroyEvent(inside.event), 0);
  CHECK_EQ(aclrtDestroyStream(inside.stream), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// A callback goes on when its stream is destroyed by force, but has no stream any more.
void destroyed_by_force() {
  struct Shared {
    std::atomic<bool> begun = false, destroyed = false;
    int code = -1;
  } shared;
  const auto callback = [](void* own) {
    auto* now = static_cast<Shared*>(own);
    now->begun = true;
    while (!now->destroyed) std::this_thread::yield();
    CHECK_EQ(aclrtSetDevice(0), 0);
    now->code = aclrtSynchronizeDevice();
    CHECK_EQ(aclrtResetDevice(0), 0);
  };
  aclrtStream stream;
  std::atomic<uint64_t> id = 0;
  std::atomic<bool> stop = false;
  std::thread thread([&] {
    id = self();
    while (!stop) (void)aclrtProcessReport(5);
  });
  while (id == 0) std::this_thread::yield();
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtSubscribeReport(id, stream), 0);
  CHECK_EQ(aclrtLaunchCallback(callback, &shared, ACL_CALLBACK_BLOCK, stream), 0);
  while (!shared.begun) std::this_thread::yield();
  CHECK_EQ(aclrtDestroyStreamForce(stream), 0);
  shared.destroyed = true;
  stop = true;
  thread.join();
  CHECK_EQ(shared.code, 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// Ending a subscription too early is reported, and nothing hangs.
void unsubscribed_early() {
  aclrtStream stream;
  std::atomic<int> ran = 0;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtSubscribeReport(self(), stream), 0);
  CHECK_EQ(aclrtLaunchCallback(add, &ran, ACL_CALLBACK_NO_BLOCK, stream), 0);
  CHECK_EQ(aclrtLaunchCallback(add, &ran, ACL_CALLBACK_BLOCK, stream), 0);
  CHECK_EQ(aclrtLaunchCallback(add, &ran, ACL_CALLBACK_NO_BLOCK, stream), 0);
  CHECK_EQ(aclrtUnSubscribeReport(self(), stream), 0);
  CHECK_FAILS(aclrtSynchronizeStream(stream), 100034,
              "aclrtSynchronizeStream: aclrtUnSubscribeReport came before a callback of the stream "
              "had run");
  CHECK_EQ(aclrtProcessReport(1000),
           0);  // the callback that no stream waits for was handed over before
  CHECK_EQ(aclrtProcessReport(1), 100035);
  CHECK_EQ(ran.load(), 1);

  CHECK_EQ(aclrtSubscribeReport(self(), stream), 0);
  CHECK_EQ(aclrtLaunchCallback(add, &ran, ACL_CALLBACK_BLOCK, stream), 0);
  CHECK_EQ(aclrtDestroyStreamForce(stream), 0);  // ends its subscription
  CHECK_EQ(aclrtProcessReport(1), 100035);
  CHECK_EQ(ran.load(), 1);

  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtSubscribeReport(self(), stream), 0);
  CHECK_EQ(aclrtLaunchCallback(add, &ran, ACL_CALLBACK_BLOCK, stream), 0);
  std::thread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK_EQ(aclrtSetDevice(0), 0);
    CHECK_EQ(aclrtSynchronizeStream(stream), 0);
    CHECK_EQ(aclrtDestroyStream(stream), 0);
    CHECK_EQ(aclrtResetDevice(0), 0);
  });
  CHECK_EQ(aclrtProcessReport(-1), 0);
  CHECK_EQ(aclrtProcessReport(-1), 100035);  // woken when the last stream goes
  closer.join();
  CHECK_EQ(ran.load(), 2);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

void many_streams_and_threads() {
  constexpr int kThreads = 4, kStreams = 8, kCallbacks = 100;
  std::atomic<int> ran = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  std::vector<aclrtStream> streams(kStreams);
  std::atomic<uint64_t> ids[kThreads] = {};
  CHECK_EQ(aclrtSetDevice(0), 0);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ids[i] = self();
      while (!stop) (void)aclrtProcessReport(5);
    });
  }
  for (auto& id : ids) {
    while (id == 0) std::this_thread::yield();
  }
  for (size_t i = 0; i < kStreams; ++i) {
    CHECK_EQ(aclrtCreateStream(&streams[i]), 0);
    CHECK_EQ(aclrtSubscribeReport(ids[i % kThreads], streams[i]), 0);
  }
  for (int i = 0; i < kCallbacks; ++i) {
    for (aclrtStream stream : streams) {
      CHECK_EQ(aclrtLaunchCallback(add, &ran, ACL_CALLBACK_BLOCK, stream), 0);
    }
  }
  CHECK_EQ(aclrtSynchronizeDevice(), 0);
  CHECK_EQ(ran.load(), kStreams * kCallbacks);
  for (size_t i = 0; i < kStreams; ++i) {
    CHECK_EQ(aclrtUnSubscribeReport(ids[i % kThreads], streams[i]), 0);
    CHECK_EQ(aclrtDestroyStream(streams[i]), 0);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(aclrtResetDevice(0), 0);
}

}  // namespace

int main() {
  arguments();
  in_order();
  from_within();
  destroyed_by_force();
  unsubscribed_early();
  many_streams_and_threads();
  return check_result();
}
