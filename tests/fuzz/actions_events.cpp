// SPDX-License-Identifier: Apache-2.0
// Events, waits across streams, callbacks, parameters, the last error.
#include <pthread.h>

#include "world.h"

namespace fuzz {
namespace {

int32_t some_timeout(Random& random) {
  constexpr int32_t timeouts[] = {-2, -1, 0, 1, 5000, INT32_MIN, INT32_MAX};
  return random.pick(timeouts);
}

// ---- events ----

void create_event(World& w) {
  if (w.events.live.size() > 12) return;
  aclrtEvent made = nullptr;
  const bool null = w.random.chance(5);
  aclrtEvent* where = null ? nullptr : &made;
  const auto flag =
      static_cast<uint32_t>(w.random.chance(80) ? w.random.below(16) : w.random.next());
  const Must flagged = null ? Must::fail : Must::either;
  const uint64_t kind = w.random.below(3);
  const Must plain = null || !has_context() ? Must::fail : Must::pass;
  const bool ok = kind == 0   ? JUDGE(plain, aclrtCreateEvent, where)
                  : kind == 1 ? JUDGE(flagged, aclrtCreateEventWithFlag, where, flag)
                              : JUDGE(flagged, aclrtCreateEventExWithFlag, where, flag);
  if (ok) w.events.add(made);
}

void destroy_event(World& w) {
  const Pick event = w.pick(w.events);
  if (JUDGE(must_pass_if(event.live), aclrtDestroyEvent, event.handle)) w.events.kill(event.handle);
}

Must must_with(const Pick& event, const Pick& stream) {
  return must_fail_unless(event.live && (stream.live || stream.handle == nullptr));
}

void record_event(World& w) {
  const Pick event = w.pick(w.events), stream = w.pick(w.streams);
  JUDGE(must_with(event, stream), aclrtRecordEvent, event.handle, stream.handle);
}

void wait_for_event(World& w) {
  const Pick event = w.pick(w.events), stream = w.pick(w.streams);
  const Must must = must_with(event, stream);
  const int32_t seconds = some_timeout(w.random);
  switch (w.random.below(3)) {
    case 0: JUDGE(must, aclrtStreamWaitEvent, stream.handle, event.handle); break;
    case 1:
      JUDGE(seconds < 0 ? Must::fail : must, aclrtStreamWaitEventWithTimeout, stream.handle,
            event.handle, seconds);
      break;
    default: JUDGE(must, aclrtResetEvent, event.handle, stream.handle);
  }
}

void ask_event(World& w) {
  const Pick event = w.pick(w.events), end = w.pick(w.events);
  const bool null = w.random.chance(10);
  const Must must = must_fail_unless(event.live && !null);
  aclrtEventRecordedStatus recorded;
  aclrtEventStatus status;
  aclrtEventWaitStatus waits;
  float ms = 0;
  uint64_t time = 0;
  switch (w.random.below(7)) {
    case 0: JUDGE(must, aclrtQueryEventStatus, event.handle, null ? nullptr : &recorded); break;
    case 1: JUDGE(must, aclrtQueryEvent, event.handle, null ? nullptr : &status); break;
    case 2: JUDGE(must, aclrtQueryEventWaitStatus, event.handle, null ? nullptr : &waits); break;
    case 3: JUDGE(must_fail_unless(event.live), aclrtSynchronizeEvent, event.handle); break;
    case 4: {
      const int32_t timeout = some_timeout(w.random);
      JUDGE(timeout < -1 ? Must::fail : must_fail_unless(event.live),
            aclrtSynchronizeEventWithTimeout, event.handle, timeout);
      break;
    }
    case 5:
      if (JUDGE(must_fail_unless(event.live && end.live && !null), aclrtEventElapsedTime,
                null ? nullptr : &ms, event.handle, end.handle) &&
          !(ms >= 0 && ms < 1e6f)) {
        fault("%g ms between two events", static_cast<double>(ms));
      }
      break;
    default: JUDGE(must, aclrtEventGetTimestamp, event.handle, null ? nullptr : &time);
  }
}

void ask_stream(World& w) {
  const Pick stream = w.pick(w.streams);
  const bool known = stream.live || stream.handle == nullptr, null = w.random.chance(10);
  aclrtStreamStatus status;
  JUDGE(must_fail_unless(known && !null), aclrtStreamQuery, stream.handle,
        null ? nullptr : &status);
  const int32_t timeout = some_timeout(w.random);
  JUDGE(timeout < -1 ? Must::fail : must_fail_unless(known), aclrtSynchronizeStreamWithTimeout,
        stream.handle, timeout);
  JUDGE(timeout < -1 ? Must::fail : Must::either, aclrtSynchronizeDeviceWithTimeout, timeout);
}

// ---- callbacks, which this thread runs ----

bool ran = false;

void callback(void* data) { *static_cast<bool*>(data) = true; }

uint64_t own_thread() { return static_cast<uint64_t>(pthread_self()); }

void subscribe(World& w) {
  const Pick stream = w.pick(w.streams);
  const Must must = must_fail_unless(stream.live || stream.handle == nullptr);
  if (w.random.chance(60)) {
    JUDGE(must, aclrtSubscribeReport, own_thread(), stream.handle);
  } else {
    const uint64_t thread = w.random.chance(80) ? own_thread() : w.random.next();
    JUDGE(must, aclrtUnSubscribeReport, thread, stream.handle);
  }
}

// A callback that the stream waits for runs before anything else, because no other thread would run
// it.
void launch_callback(World& w) {
  const Pick stream = w.pick(w.streams);
  const Must must = must_fail_unless(stream.live || stream.handle == nullptr);
  const auto wrong = static_cast<aclrtCallbackBlockType>(w.random.between(2, 9));
  if (w.random.chance(5))
    JUDGE(Must::fail, aclrtLaunchCallback, nullptr, &ran, ACL_CALLBACK_BLOCK, stream.handle);
  if (w.random.chance(5))
    JUDGE(Must::fail, aclrtLaunchCallback, callback, &ran, wrong, stream.handle);
  const bool blocks = w.random.chance(30);
  ran = false;
  static bool other;
  if (!JUDGE(must, aclrtLaunchCallback, callback, blocks ? &ran : &other,
             blocks ? ACL_CALLBACK_BLOCK : ACL_CALLBACK_NO_BLOCK, stream.handle)) {
    return;
  }
  while (blocks && !ran) JUDGE(Must::pass, aclrtProcessReport, 20'000);
}

void process_report(World& w) {
  constexpr int32_t timeouts[] = {0, -2, INT32_MIN, 1};
  const int32_t timeout = w.random.pick(timeouts);
  JUDGE(timeout == 1 ? Must::either : Must::fail, aclrtProcessReport, timeout);
}

// ---- parameters, errors, memory by address ----

void use_parameters(World& w) {
  const auto option = static_cast<aclSysParamOpt>(w.random.between(-1, 5));
  const int64_t value = w.random.between(-1, 4);
  int64_t returned = -1;
  if (JUDGE(Must::either, aclrtSetSysParamOpt, option, value)) {
    JUDGE(Must::pass, aclrtGetSysParamOpt, option, &returned);
    if (returned != value)
      fault("a parameter is %lld, not %lld", (long long)returned, (long long)value);
  }
  if (JUDGE(Must::either, aclrtCtxSetSysParamOpt, option, value)) {
    JUDGE(Must::pass, aclrtCtxGetSysParamOpt, option, &returned);
    if (returned != value)
      fault("a parameter is %lld, not %lld", (long long)returned, (long long)value);
  }
  JUDGE(Must::fail, aclrtGetSysParamOpt, option, nullptr);
}

void last_error(World& w) {
  const auto level = static_cast<aclrtLastErrLevel>(w.random.chance(80) ? 0 : 7);
  const aclError seen = CALL(aclrtPeekAtLastError, level);
  if (CALL(aclrtGetLastError, level) != seen) fault("aclrtPeekAtLastError saw another error");
  if (level == 0 && CALL(aclrtPeekAtLastError, level) != 0) fault("the last error was not taken");
  CALL(aclGetRecentErrMsg);
}

void ask_pointer(World& w) {
  const Pick memory = w.pick(w.device_memory);
  aclrtPtrAttributes attributes;
  if (!JUDGE(memory.handle == nullptr ? Must::fail : Must::pass, aclrtPointerGetAttributes,
             memory.handle, &attributes)) {
    return;
  }
  const bool device = attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
  if (memory.live && !device) fault("device memory is not known as such");
}

void free_with_sync(World& w) {
  if (!settle(w)) return;
  const Pick memory = w.pick(w.device_memory);
  if (JUDGE(must_fail_unless(memory.live), aclrtFreeWithDevSync, memory.handle)) {
    w.device_memory.kill(memory.handle);
  }
}

}  // namespace

// Runs every callback that is left: they survive the end of their stream.
void leave_reports(World& w) {
  for (void* stream : w.streams.live) {
    CALL(aclrtUnSubscribeReport, own_thread(), stream);
    CALL(aclGetRecentErrMsg);
  }
}

const std::vector<Action> event_actions = {
    {5, create_event},   {3, destroy_event},  {10, record_event}, {8, wait_for_event},
    {8, ask_event},      {4, ask_stream},     {2, subscribe},     {3, launch_callback},
    {1, process_report}, {2, use_parameters}, {2, last_error},    {2, ask_pointer},
    {1, free_with_sync},
};

}  // namespace fuzz
