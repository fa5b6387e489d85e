// SPDX-License-Identifier: Apache-2.0
// What a program sets and asks about streams, states, failure modes and aborts.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "gate.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

void attributes() {
  aclrtStream stream = nullptr, other = nullptr;
  int32_t id = -1, next = -1;
  uint32_t value = 99;
  CHECK_EQ(aclrtCreateStreamWithConfig(&stream, 3, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC),
           0);
  CHECK_EQ(aclrtStreamGetPriority(stream, &value), 0);
  CHECK_EQ(value, 3u);
  CHECK_EQ(aclrtStreamGetFlags(stream, &value), 0);
  CHECK_EQ(value, 3u);
  CHECK_EQ(aclrtStreamGetId(stream, &id), 0);
  CHECK_EQ(aclrtCreateStream(&other), 0);
  CHECK_EQ(aclrtStreamGetId(other, &next), 0);
  CHECK(id >= 0 && next >= 0 && id != next);
  CHECK_EQ(aclrtStreamGetFlags(other, &value), 0);
  CHECK_EQ(value, 0u);
  CHECK_FAILS(aclrtStreamGetId(stream, nullptr), 100000, "aclrtStreamGetId: streamId must not be");
  CHECK_FAILS(aclrtStreamGetPriority(stream, nullptr), 100000, "priority must not be NULL");
  CHECK_FAILS(aclrtStreamGetFlags(stream, nullptr), 100000, "flags must not be NULL");
  CHECK_FAILS(aclrtStreamGetFlags(foreign, &value), 107017, "aclrtStreamGetFlags: stream 0x");
  CHECK_EQ(aclrtStreamGetId(foreign, &id), 107017);
  CHECK_EQ(aclrtStreamGetPriority(foreign, &value), 107017);

  aclrtStream by_default = nullptr;
  CHECK_EQ(aclrtCtxGetCurrentDefaultStream(&by_default), 0);
  CHECK_EQ(aclrtStreamGetId(nullptr, &id), 0);
  CHECK_EQ(aclrtStreamGetId(by_default, &next), 0);
  CHECK_EQ(id, next);
  CHECK_EQ(aclrtSynchronizeStream(by_default), 0);
  CHECK_FAILS(aclrtCtxGetCurrentDefaultStream(nullptr), 100000, "stream must not be NULL");

  aclrtStreamAttrValue set = {}, got = {};
  set.userCustomTag = 42;
  CHECK_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &set), 0);
  CHECK_EQ(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_USER_CUSTOM_TAG, &got), 0);
  CHECK_EQ(got.userCustomTag, 42u);
  set.streamPriority = 7;
  CHECK_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, &set), 0);
  CHECK_EQ(aclrtStreamGetPriority(stream, &value), 0);
  CHECK_EQ(value, 7u);
  set.streamPriority = 8;
  CHECK_FAILS(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, &set), 100000,
              "streamPriority must be in [0, 8), but got 8");
  set.overflowSwitch = 1;
  CHECK_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &set), 0);
  CHECK_EQ(aclrtGetStreamOverflowSwitch(stream, &value), 0);
  CHECK_EQ(value, 1u);
  CHECK_EQ(aclrtSetStreamOverflowSwitch(stream, 0), 0);
  CHECK_EQ(aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK, &got), 0);
  CHECK_EQ(got.overflowSwitch, 0u);
  CHECK_FAILS(aclrtSetStreamOverflowSwitch(stream, 2), 100000, "flag must be 0 or 1, but got 2");
  CHECK_EQ(aclrtGetStreamOverflowSwitch(foreign, &value), 107017);
  CHECK_EQ(aclrtGetStreamOverflowSwitch(stream, nullptr), 100000);
  CHECK_FAILS(aclrtSetStreamAttribute(stream, static_cast<aclrtStreamAttr>(9), &set), 100000,
              "stmAttrType must be in [1, 5], but got 9");
  CHECK_EQ(aclrtGetStreamAttribute(stream, static_cast<aclrtStreamAttr>(0), &got), 100000);
  CHECK_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, nullptr), 100000);
  CHECK_EQ(aclrtGetStreamAttribute(foreign, ACL_STREAM_ATTR_PRIORITY, &got), 107017);
  CHECK_EQ(aclrtDestroyStream(other), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtStreamGetId(stream, &id), 107017);
}

void configuration() {
  aclrtStreamConfigHandle* config = aclrtCreateStreamConfigHandle();
  CHECK(config != nullptr);
  size_t flag = ACL_STREAM_FAST_LAUNCH;
  uint32_t short_flag = ACL_STREAM_FAST_SYNC, priority = 5, value = 0;
  CHECK_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flag, sizeof flag), 0);
  CHECK_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, sizeof priority), 0);
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStreamV2(&stream, config), 0);
  CHECK_EQ(aclrtStreamGetFlags(stream, &value), 0);
  CHECK_EQ(value, 1u);
  CHECK_EQ(aclrtStreamGetPriority(stream, &value), 0);
  CHECK_EQ(value, 5u);
  CHECK_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &short_flag, sizeof short_flag), 0);
  CHECK_EQ(config->flag, size_t{2});
  priority = 8;
  CHECK_FAILS(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, sizeof priority),
              100000, "the priority must be in [0, 8), but got 8");
  CHECK_FAILS(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &flag, sizeof flag), 100000,
              "valueSize of attr 3 must be 4, but got 8");
  CHECK_FAILS(aclrtSetStreamConfigOpt(config, static_cast<aclrtStreamConfigAttr>(4), &flag, 8),
              100000, "attr must be in [0, 3], but got 4");
  CHECK_EQ(aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, nullptr, 8), 100000);
  CHECK_EQ(aclrtSetStreamConfigOpt(nullptr, ACL_RT_STREAM_FLAG, &flag, 8), 100000);
  CHECK_EQ(aclrtCreateStreamV2(&stream, nullptr), 100000);
  CHECK_EQ(aclrtCreateStreamV2(nullptr, config), 100000);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtDestroyStreamConfigHandle(config), 0);
  CHECK_FAILS(aclrtDestroyStreamConfigHandle(config), 100000, "destroyed or never created");
  CHECK_EQ(aclrtDestroyStreamConfigHandle(nullptr), 100000);
  CHECK_EQ(aclrtCreateStreamV2(&stream, config), 100000);
}

struct States {
  std::vector<std::pair<aclrtStream, int>> seen;
};

void note_state(aclrtStream stream, aclrtStreamState state, void* states) {
  static_cast<States*>(states)->seen.push_back({stream, state});
}

void states() {
  States states;
  CHECK_FAILS(aclrtRegStreamStateCallback(nullptr, note_state, &states), 100000,
              "regName must not be NULL");
  CHECK_EQ(aclrtRegStreamStateCallback("", note_state, &states), 100000);
  CHECK_EQ(aclrtRegStreamStateCallback("test", note_state, &states), 0);
  CHECK_FAILS(aclrtRegStreamStateCallback("test", note_state, &states), 107000,
              "a callback is already registered as \"test\"");
  aclrtStream stream = nullptr, first = nullptr;
  aclrtContext context = nullptr, outer = nullptr;
  CHECK_EQ(aclrtGetCurrentContext(&outer), 0);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtCreateContext(&context, 0), 0);
  CHECK_EQ(aclrtCtxGetCurrentDefaultStream(&first), 0);
  CHECK_EQ(aclrtDestroyContext(context), 0);
  CHECK_EQ(aclrtSetCurrentContext(outer), 0);
  const std::vector<std::pair<aclrtStream, int>> wanted = {
      {stream, 1}, {stream, 2}, {first, 1}, {first, 2}};
  CHECK(states.seen == wanted);
  CHECK_EQ(aclrtRegStreamStateCallback("test", nullptr, nullptr), 0);
  CHECK_EQ(aclrtRegStreamStateCallback("test", nullptr, nullptr), 107000);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(states.seen.size(), wanted.size());
}

// A task that fails: a wait for a notification that nobody records.
void fail_on(aclrtStream stream) {
  aclrtNotify notify = nullptr;
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 1), 0);
  CHECK_EQ(aclrtDestroyNotify(notify), 0);
}

void failure_mode() {
  aclrtStream stream = nullptr, sibling = nullptr;
  char* p = nullptr;
  CHECK_EQ(aclrtMalloc(reinterpret_cast<void**>(&p), 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMemset(p, 64, 0, 64), 0);
  aclrtContext context = nullptr, outer = nullptr;
  CHECK_EQ(aclrtGetCurrentContext(&outer), 0);
  CHECK_EQ(aclrtCreateContext(&context, 0), 0);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtCreateStream(&sibling), 0);
  CHECK_FAILS(aclrtSetStreamFailureMode(stream, 2), 107000, "mode must be 0 (continue) or 1");
  CHECK_EQ(aclrtSetStreamFailureMode(foreign, 1), 107017);
  CHECK_EQ(aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE), 0);

  fail_on(stream);  // the work behind it runs all the same
  CHECK_EQ(aclrtMemsetAsync(p, 64, 1, 64, stream), 0);
  CHECK_FAILS(aclrtSynchronizeStream(stream), 107020, "timed out after 1 s");
  CHECK_EQ(p[0], 1);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);

  CHECK_EQ(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), 0);
  CHECK_FAILS(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE), 107000, "can be set once");
  CHECK_EQ(aclrtMemsetAsync(p, 64, 2, 64, stream), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  fail_on(stream);
  CHECK_EQ(aclrtMemsetAsync(p, 64, 3, 64, stream), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 107020);
  CHECK_EQ(p[0], 2);
  CHECK_FAILS(aclrtMemsetAsync(p, 64, 4, 64, stream), 107020,
              "aclrtMemsetAsync: the stream stopped at a failure");
  CHECK_EQ(aclrtSynchronizeStream(stream), 107020);
  CHECK_EQ(aclrtMemsetAsync(p, 64, 4, 64, sibling), 107020);  // and all streams of the context
  CHECK_EQ(p[0], 2);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtDestroyStream(sibling), 0);
  CHECK_EQ(aclrtDestroyContext(context), 0);
  CHECK_EQ(aclrtSetCurrentContext(outer), 0);
  CHECK_EQ(aclrtMemsetAsync(p, 64, 5, 64, nullptr), 0);  // not of another
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK_EQ(p[0], 5);
  CHECK_EQ(aclrtFree(p), 0);
}

void aborts() {
  aclrtStream stream = nullptr;
  aclrtNotify notify = nullptr;
  char* p = nullptr;
  CHECK_EQ(aclrtMalloc(reinterpret_cast<void**>(&p), 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMemset(p, 64, 0, 64), 0);
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 0), 0);
  CHECK_EQ(aclrtMemsetAsync(p, 64, 1, 64, stream), 0);
  aclrtContext context = nullptr;
  CHECK_EQ(aclrtGetCurrentContext(&context), 0);
  std::atomic<bool> waits = false;
  std::thread waiter([&] {
    CHECK_EQ(aclrtSetCurrentContext(context), 0);
    waits = true;
    CHECK_FAILS(aclrtSynchronizeStream(stream), 107023, "was dropped by aclrtStreamAbort");
  });
  while (!waits) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK_EQ(aclrtStreamAbort(stream), 0);
  waiter.join();
  CHECK_EQ(p[0], 0);
  CHECK_EQ(aclrtMemsetAsync(p, 64, 2, 64, stream), 0);  // usable again
  CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 0), 0);
  CHECK_EQ(aclrtMemsetAsync(p, 64, 3, 64, stream), 0);
  CHECK_EQ(aclrtRecordNotify(notify, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(p[0], 3);
  CHECK_EQ(aclrtStreamStop(stream), 0);
  CHECK_FAILS(aclrtStreamStop(nullptr), 100000, "stream must not be NULL");
  CHECK_EQ(aclrtStreamStop(foreign), 107017);
  CHECK_EQ(aclrtStreamAbort(foreign), 107017);
  CHECK_EQ(aclrtDestroyNotify(notify), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtStreamAbort(stream), 107017);
  CHECK_EQ(aclrtFree(p), 0);
}

// A task may not stop its own stream.
void from_a_task() {
  struct Codes {
    aclError abort = 0, stop = 0, device = 0;
    aclrtStream stream;
  } codes;
  CHECK_EQ(aclrtCreateStream(&codes.stream), 0);
  const auto run = [](void* given) {
    auto* own = static_cast<Codes*>(given);
    own->abort = aclrtStreamAbort(own->stream);
    own->stop = aclrtStreamStop(own->stream);
    own->device = aclrtDeviceTaskAbort(0, 0);
  };
  CHECK_EQ(aclrtLaunchHostFunc(codes.stream, run, &codes), 0);
  CHECK_EQ(aclrtSynchronizeStream(codes.stream), 0);
  CHECK_EQ(codes.abort, 107000);
  CHECK_EQ(codes.stop, 107000);
  CHECK_EQ(codes.device, 107000);
  CHECK_EQ(aclrtDestroyStream(codes.stream), 0);
}

}  // namespace

int main() {
  int32_t id;
  aclrtStream stream;
  CHECK_EQ(aclrtStreamGetId(nullptr, &id), 107002);
  CHECK_EQ(aclrtCtxGetCurrentDefaultStream(&stream), 107002);
  CHECK_EQ(aclrtSetDevice(0), 0);
  attributes();
  configuration();
  states();
  failure_mode();
  aborts();
  from_a_task();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}
