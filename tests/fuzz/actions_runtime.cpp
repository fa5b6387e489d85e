// SPDX-License-Identifier: Apache-2.0
// Devices, contexts, streams and memory, each call with right and wrong arguments.
#include <cstring>

#include "world.h"

namespace fuzz {
bool has_context() {
  aclrtContext now = nullptr;
  const bool has = CALL(aclrtGetCurrentContext, &now) == ACL_SUCCESS;
  if (!has) CALL(aclGetRecentErrMsg);
  return has;
}

bool settle(World& w) {
  if (!w.pending || !has_context()) return !w.pending;
  for (void* stream : w.unawaited) {
    if (!w.streams.has(stream)) continue;
    aclrtEvent event = nullptr;
    JUDGE(Must::pass, aclrtCreateEvent, &event);
    if (JUDGE(Must::either, aclrtRecordEvent, event, stream)) {  // its context may be gone
      JUDGE(Must::either, aclrtSynchronizeEvent, event);         // its work may have failed
    }
    JUDGE(Must::pass, aclrtDestroyEvent, event);
  }
  JUDGE(Must::either, aclrtSynchronizeDevice);
  w.pending = false;
  return true;
}

namespace {

Must must_if_context() { return has_context() ? Must::pass : Must::fail; }

// ---- devices and contexts ----

void set_device(World& w) {
  const int32_t device = w.random.chance(90) ? 0 : static_cast<int32_t>(w.random.next());
  JUDGE(device == 0 ? Must::pass : Must::fail, aclrtSetDevice, device);
}

void reset_device(World& w) {
  const int32_t device = w.random.chance(90) ? 0 : static_cast<int32_t>(w.random.next());
  const Must must = device == 0 ? Must::either : Must::fail;
  if (!settle(w)) return;
  w.random.chance(50) ? JUDGE(must, aclrtResetDevice, device)
                      : JUDGE(must, aclrtResetDeviceForce, device);
}

void ask_device(World& w) {
  int32_t device = -1;
  uint32_t count = 0;
  aclrtRunMode mode = ACL_DEVICE;
  int32_t version[3];
  const bool null = w.random.chance(10);
  JUDGE(null ? Must::fail : must_if_context(), aclrtGetDevice, null ? nullptr : &device);
  JUDGE(null ? Must::fail : Must::pass, aclrtGetDeviceCount, null ? nullptr : &count);
  JUDGE(null ? Must::fail : Must::pass, aclrtGetRunMode, null ? nullptr : &mode);
  JUDGE(null ? Must::fail : Must::pass, aclrtGetVersion, version, version + 1,
        null ? nullptr : version + 2);
  JUDGE(has_context() ? Must::either : Must::fail, aclrtSynchronizeDevice);
}

void create_context(World& w) {
  if (w.contexts.live.size() > 8) return;
  aclrtContext made = nullptr;
  const int32_t device = w.random.chance(90) ? 0 : 99;
  const bool null = w.random.chance(5);
  const bool good = !null && device == 0;
  if (JUDGE(good ? Must::pass : Must::fail, aclrtCreateContext, null ? nullptr : &made, device)) {
    w.contexts.add(made);
  }
}

void set_context(World& w) {
  const Pick context = w.pick(w.contexts);
  JUDGE(must_pass_if(context.live), aclrtSetCurrentContext, context.handle);
}

void destroy_context(World& w) {
  if (!settle(w)) return;
  const Pick context = w.pick(w.contexts);
  if (JUDGE(must_pass_if(context.live), aclrtDestroyContext, context.handle)) {
    w.contexts.kill(context.handle);
  }
}

// ---- streams ----

void create_stream(World& w) {
  if (w.streams.live.size() > 12) return;
  aclrtStream made = nullptr;
  const bool null = w.random.chance(5);
  const Must must = null ? Must::fail : must_if_context();
  aclrtStream* where = null ? nullptr : &made;
  const auto priority = static_cast<uint32_t>(w.random.next()), flag = priority >> 16;
  const bool plain = w.random.chance(50);
  const uint32_t used = w.random.chance(50) ? flag & 3 : flag;
  const bool ok =
      plain ? JUDGE(must, aclrtCreateStream, where)
            : JUDGE(null ? must : Must::either, aclrtCreateStreamWithConfig, where, priority, used);
  if (ok && !plain) w.unawaited.push_back(made);  // perhaps
  if (ok) w.streams.add(made);
}

void destroy_stream(World& w) {
  const Pick stream = w.pick(w.streams);
  const Must must = must_fail_unless(stream.live);  // it may be of another context
  const bool gone = w.random.chance(70) ? JUDGE(must, aclrtDestroyStream, stream.handle)
                                        : JUDGE(must, aclrtDestroyStreamForce, stream.handle);
  if (gone) w.streams.kill(stream.handle);
}

void synchronize_stream(World& w) {
  const Pick stream = w.pick(w.streams);
  const Must must = stream.live || stream.handle == nullptr ? Must::either : Must::fail;
  JUDGE(must, aclrtSynchronizeStream, stream.handle);
}

// ---- memory ----

size_t some_size(Random& random) {
  switch (random.below(12)) {
    case 0: return 0;
    case 1: return SIZE_MAX - random.below(70);
    case 2: return size_t{1} << random.between(45, 63);
    case 3: return random.below(3 << 20);
    default: return random.below(5000) + 1;
  }
}

void allocate(World& w) {
  if (w.device_memory.live.size() + w.host_memory.live.size() > 16) return;
  const size_t size = some_size(w.random);
  const bool null = w.random.chance(5),
             good = !null && size - 1 < (size_t{1} << 40) && has_context();
  const Must must = good ? Must::pass : Must::fail;
  void* made = nullptr;
  void** where = null ? nullptr : &made;
  const auto policy = static_cast<aclrtMemMallocPolicy>(w.random.below(8));
  const uint64_t kind = w.random.below(4);
  const bool ok = kind == 0   ? JUDGE(must, aclrtMalloc, where, size, policy)
                  : kind == 1 ? JUDGE(must, aclrtMallocAlign32, where, size, policy)
                  : kind == 2 ? JUDGE(must, aclrtMallocCached, where, size, policy)
                              : JUDGE(must, aclrtMallocHost, where, size);
  if (!ok) return;
  (kind == 3 ? w.host_memory : w.device_memory).add(made);
  w.sizes[made] = size;
  std::memset(made, 0, size);  // the whole of it must be there
}

void release(World& w) {
  if (!settle(w)) return;
  const bool host = w.random.chance(30);
  Pool& pool = host ? w.host_memory : w.device_memory;
  const Pick memory = w.pick(pool);
  const Must must = must_pass_if(memory.live);
  if (host ? JUDGE(must, aclrtFreeHost, memory.handle) : JUDGE(must, aclrtFree, memory.handle)) {
    pool.kill(memory.handle);
  }
}

struct Region {
  char* address;
  size_t room;
};

// Somewhere in live memory, or in memory of the program.
Region some_region(World& w) {
  static char own[2][4096];
  Pool& pool = w.random.chance(70) ? w.device_memory : w.host_memory;
  if (pool.live.empty() || w.random.chance(20)) return {own[w.random.below(2)], sizeof own[0]};
  void* block = w.random.pick(pool.live);
  const size_t offset = w.random.below(w.sizes[block]);
  return {static_cast<char*>(block) + offset, w.sizes[block] - offset};
}

void copy(World& w) {
  Region to = some_region(w), from = some_region(w);
  const size_t most = to.room < from.room ? to.room : from.room;
  size_t count = w.random.below(most + 1), limit = to.room;
  const Pick stream = w.pick(w.streams);
  auto kind = static_cast<aclrtMemcpyKind>(w.random.below(8));
  bool good = has_context();
  const bool async = w.random.chance(50);
  if (async && !stream.live && stream.handle != nullptr) good = false;
  if (count > 0 && w.random.chance(20)) {  // spoil it
    good = false;
    switch (w.random.below(4)) {
      case 0: to.address = nullptr; break;
      case 1: from.address = nullptr; break;
      case 2: limit = w.random.below(count); break;
      default: kind = static_cast<aclrtMemcpyKind>(w.random.between(8, 1000));
    }
  }
  // A good call may still meet a stream of a context that is gone.
  const Must must = count == 0 ? Must::pass
                    : !good    ? Must::fail
                    : async    ? Must::either
                               : Must::pass;
  if (async) {
    const Must either = count == 0 ? Must::either : must;
    if (JUDGE(either, aclrtMemcpyAsync, to.address, limit, from.address, count, kind,
              stream.handle)) {
      w.pending = true;
    }
  } else {
    JUDGE(must, aclrtMemcpy, to.address, limit, from.address, count, kind);
  }
}

void copy_past_the_end(World& w) {
  if (w.device_memory.live.empty()) return;
  static char own[1 << 12];
  void* block = w.random.pick(w.device_memory.live);
  const size_t too_many = w.sizes[block] + 64 + w.random.below(1000);
  JUDGE(Must::fail, aclrtMemset, block, SIZE_MAX, 1, too_many);
  if (too_many > sizeof own) return;
  JUDGE(Must::fail, aclrtMemcpy, own, sizeof own, block, too_many, ACL_MEMCPY_DEVICE_TO_HOST);
  JUDGE(Must::fail, aclrtMemcpy, block, too_many, own, too_many, ACL_MEMCPY_HOST_TO_DEVICE);
}

void fill(World& w) {
  const Region to = some_region(w);
  const size_t count = w.random.below(to.room + 1);
  const auto value = static_cast<int32_t>(w.random.next());
  const bool over = count > 0 && w.random.chance(15);
  const size_t limit = over ? count - 1 : to.room;
  const Pick stream = w.pick(w.streams);
  if (w.random.chance(50)) {
    const Must must = count == 0 ? Must::pass : over || !has_context() ? Must::fail : Must::pass;
    if (!JUDGE(must, aclrtMemset, to.address, limit, value, count) || w.pending) return;
    for (size_t i = 0; i < count; ++i) {
      if (to.address[i] != static_cast<char>(value))
        fault("aclrtMemset left byte %zu as it was", i);
    }
  } else if (JUDGE(over ? Must::fail : Must::either, aclrtMemsetAsync, to.address, limit, value,
                   count, stream.handle)) {
    if (count > 0 && stream.handle != nullptr && !stream.live) fault("a dead stream was accepted");
    w.pending = true;
  }
}

void round_trip(World& w) {
  if (w.device_memory.live.empty() || !has_context() || !settle(w)) return;
  void* block = w.random.pick(w.device_memory.live);
  char there[512], back[512];
  const size_t count = w.sizes[block] < sizeof there ? w.sizes[block] : sizeof there;
  for (char& c : there) c = static_cast<char>(w.random.next());
  JUDGE(Must::pass, aclrtMemcpy, block, count, there, count, ACL_MEMCPY_HOST_TO_DEVICE);
  JUDGE(Must::pass, aclrtMemcpy, back, count, block, count, ACL_MEMCPY_DEVICE_TO_HOST);
  if (std::memcmp(there, back, count) != 0) fault("aclrtMemcpy brought back other bytes");
}

void memory_info(World& w) {
  size_t free = 0, total = 0;
  const bool null = w.random.chance(10);
  const auto attribute = static_cast<aclrtMemAttr>(w.random.below(18));
  JUDGE(null ? Must::fail : must_if_context(), aclrtGetMemInfo, attribute, &free,
        null ? nullptr : &total);
}

void initialise(World& w) {
  const uint64_t kind = w.random.below(4);
  if (kind == 0) CALL(aclInit, nullptr);  // repeated: an error status is fine
  if (kind == 1 && settle(w)) CALL(aclFinalize);
  if (kind == 2) JUDGE(Must::pass, aclnnInit, nullptr);
  if (kind == 3) JUDGE(Must::pass, aclnnFinalize);
  CALL(aclGetRecentErrMsg);
}

}  // namespace

const std::vector<Action> runtime_actions = {
    {2, set_device},        {1, reset_device},   {2, ask_device},
    {2, create_context},    {6, set_context},    {1, destroy_context},
    {6, create_stream},     {4, destroy_stream}, {6, synchronize_stream},
    {10, allocate},         {6, release},        {14, copy},
    {2, copy_past_the_end}, {8, fill},           {4, round_trip},
    {1, memory_info},       {1, initialise},
};

}  // namespace fuzz
