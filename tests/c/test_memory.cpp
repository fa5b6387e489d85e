// SPDX-License-Identifier: Apache-2.0
// Memory and the work on streams that touches it: codes and sentences, the order of tasks, and what
// destroying and resetting wait for.
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "check.h"
#include "gate.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

void memory() {
  void *p = nullptr, *host = nullptr;
  const auto any = ACL_MEM_MALLOC_HUGE_FIRST;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_FAILS(aclrtMalloc(nullptr, 1, any), 100000, "aclrtMalloc: devPtr must not be NULL");
  CHECK_FAILS(aclrtMalloc(&p, 0, any), 100000, "aclrtMalloc: size must be greater than 0");
  CHECK_FAILS(aclrtMalloc(&p, SIZE_MAX, any), 100000, "size must be at most 18446744073709551551");
  CHECK_FAILS(aclrtMalloc(&p, SIZE_MAX - 64, any), 207001,
              "out of memory: 18446744073709551551 bytes");
  CHECK_FAILS(aclrtMallocHost(nullptr, 1), 100000, "aclrtMallocHost: hostPtr must not be NULL");
  CHECK_EQ(aclrtMallocHost(&p, 0), 100000);
  CHECK_FAILS(aclrtFree(nullptr), 100000, "aclrtFree: devPtr must not be NULL");
  CHECK_EQ(aclrtMalloc(&p, 1, any), 0);
  CHECK_EQ(aclrtFree(p), 0);
  CHECK_FAILS(aclrtFree(p), 107000, "was freed or never allocated");
  CHECK_EQ(aclrtFree(foreign), 107000);
  CHECK_EQ(aclrtMalloc(&p, 64, any), 0);
  CHECK_EQ(aclrtMallocHost(&host, 64), 0);
  CHECK_FAILS(aclrtFree(host), 107000, "is host memory; free it with aclrtFreeHost");
  CHECK_FAILS(aclrtFreeHost(p), 107000, "is device memory; free it with aclrtFree");
  CHECK_EQ(aclrtFree(static_cast<char*>(p) + 32), 107000);
  CHECK_EQ(aclrtFreeHost(nullptr), 100000);
  CHECK_EQ(aclrtFreeHost(host), 0);

  // What is reserved: units of 32 bytes, and one more except for Align32.
  CHECK_EQ(aclrtSetDevice(0), 0);
  for (auto allocate : {aclrtMalloc, aclrtMallocCached, aclrtMallocAlign32}) {
    const size_t room = allocate == aclrtMallocAlign32 ? 32 : 64;
    void* one = nullptr;
    CHECK_EQ(allocate(&one, 1, any), 0);
    CHECK_EQ(aclrtMemset(one, 128, 0, room), 0);
    CHECK_EQ(aclrtMemset(one, 128, 0, room + 1), 107000);
    CHECK_EQ(aclrtFree(one), 0);
  }
  CHECK_EQ(aclrtResetDevice(0), 0);

  size_t free = 0, total = 0;
  CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), 0);
  CHECK(free > 0 && free <= total);
  CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, nullptr, &total), 100000);
  CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, nullptr), 100000);
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclrtFree(p), 0);  // late, as programs do
}

// Programs rely on the alignment of devices, which is more than the promised 64 bytes: ggml aborts
// below 128. The test allocates many sizes at once, since an allocator may align one address by
// luck.
void alignment() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  const auto with_config = [](void** p, size_t size, aclrtMemMallocPolicy policy) {
    return aclrtMallocWithCfg(p, size, policy, nullptr);
  };
  const auto on_host = [](void** p, size_t size, aclrtMemMallocPolicy) {
    return aclrtMallocHost(p, size);
  };
  struct Pair {
    aclError (*allocate)(void**, size_t, aclrtMemMallocPolicy);
    aclError (*free)(void*);
  };
  for (const auto& [allocate, free] :
       {Pair{aclrtMalloc, aclrtFree}, Pair{aclrtMallocAlign32, aclrtFree},
        Pair{aclrtMallocCached, aclrtFree}, Pair{with_config, aclrtFree},
        Pair{on_host, aclrtFreeHost}}) {
    std::vector<void*> all;
    for (size_t size = 1; size < (size_t{8} << 20); size += size / 3 + 1) {
      void* p = nullptr;
      CHECK_EQ(allocate(&p, size, ACL_MEM_MALLOC_HUGE_FIRST), 0);
      CHECK_EQ(reinterpret_cast<uintptr_t>(p) % 512, 0u);
      all.push_back(p);
    }
    for (void* p : all) CHECK_EQ(free(p), 0);
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
}

void copies() {
  const auto up = ACL_MEMCPY_HOST_TO_DEVICE;
  void* p = nullptr;
  char bytes[128] = "0123456789";
  char back[128] = {};
  CHECK_EQ(aclrtMemcpy(nullptr, 0, nullptr, 0, static_cast<aclrtMemcpyKind>(99)), 0);
  CHECK_EQ(aclrtMemset(nullptr, 0, 0, 0), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtMalloc(&p, 60, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_FAILS(aclrtMemcpy(nullptr, 8, bytes, 8, up), 100000, "aclrtMemcpy: dst must not be NULL");
  CHECK_FAILS(aclrtMemcpy(p, 8, nullptr, 8, up), 100000, "aclrtMemcpy: src must not be NULL");
  CHECK_FAILS(aclrtMemcpy(p, 8, bytes, 8, static_cast<aclrtMemcpyKind>(99)), 100000,
              "kind must be in [0, 7], but got 99");
  CHECK_FAILS(aclrtMemcpy(p, 8, bytes, 9, up), 107000, "count must be at most destMax, but 9 > 8");
  CHECK_FAILS(aclrtMemcpy(p, 128, bytes, 97, up), 107000,
              "must be at most 96, the bytes reserved from dst to the end of its allocation (the "
              "program asked for 60 of them), but got 97");
  CHECK_FAILS(aclrtMemcpy(back, 128, static_cast<char*>(p) + 40, 60, ACL_MEMCPY_DEVICE_TO_HOST),
              107000,
              "at most 56, the bytes reserved from src to the end of its allocation (the "
              "program asked for 20 of them), but got 60");
  CHECK_FAILS(aclrtMemcpy(back, 128, static_cast<char*>(p) + 64, 40, ACL_MEMCPY_DEVICE_TO_HOST),
              107000,
              "at most 32, the bytes reserved from src to the end of its allocation (the "
              "program asked for 0 of them), but got 40");
  for (const size_t count : {SIZE_MAX, size_t{1} << 63}) {
    CHECK_FAILS(aclrtMemcpy(back, SIZE_MAX, bytes, count, ACL_MEMCPY_HOST_TO_HOST), 107000,
                "what a process can address");
  }
  CHECK_FAILS(aclrtMemcpy(p, 60, bytes, 97, up), 107000,  // the program's own limit comes first
              "count must be at most destMax, but 97 > 60");
  CHECK_FAILS(aclrtMemset(p, 60, 0, 97), 107000, "count must be at most maxCount, but 97 > 60");
  CHECK_EQ(aclrtMemcpy(p, 64, bytes, 64, up), 0);  // as a copy of whole units needs
  CHECK_EQ(aclrtMemcpy(back, 128, p, 11, ACL_MEMCPY_DEVICE_TO_HOST), 0);
  CHECK_EQ(std::string(back), "0123456789");
  CHECK_FAILS(aclrtMemset(nullptr, 8, 0, 8), 100000, "aclrtMemset: devPtr must not be NULL");
  CHECK_FAILS(aclrtMemset(p, 8, 0, 9), 107000, "count must be at most maxCount, but 9 > 8");
  CHECK_FAILS(aclrtMemset(p, 128, 0, 128), 107000, "the bytes reserved from devPtr to the end");
  CHECK_EQ(aclrtMemset(p, 60, 0x17F, 60), 0);
  CHECK_EQ(static_cast<char*>(p)[59], 0x7F);

  CHECK_EQ(aclrtMemcpyAsync(nullptr, 0, nullptr, 0, up, foreign), 0);
  CHECK_EQ(aclrtMemsetAsync(nullptr, 0, 0, 0, foreign), 0);
  CHECK_FAILS(aclrtMemcpyAsync(p, 8, bytes, 8, up, foreign), 107017, "aclrtMemcpyAsync: stream 0x");
  CHECK_EQ(aclrtMemcpyAsync(nullptr, 8, bytes, 8, up, nullptr), 100000);
  CHECK_EQ(aclrtMemcpyAsync(p, 8, bytes, 9, up, nullptr), 107000);
  CHECK_FAILS(aclrtMemcpyAsync(back, 8, bytes, 8, ACL_MEMCPY_HOST_TO_HOST, nullptr), 207000,
              "ACL_MEMCPY_HOST_TO_HOST cannot run in a stream");
  CHECK_EQ(aclrtMemsetAsync(nullptr, 8, 0, 8, nullptr), 100000);
  CHECK_EQ(aclrtMemsetAsync(p, 8, 0, 9, nullptr), 107000);
  CHECK_EQ(aclrtMemsetAsync(p, 8, 0, 8, foreign), 107017);
  CHECK_EQ(aclrtFree(p), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// A program that polls whether its device is done leaves nothing behind.
void looking_costs_nothing() {
  constexpr int kLooks = 20000;
  CHECK_EQ(aclrtSetDevice(0), 0);
  {
    const Gate gate(nullptr);
    CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(0), 507046);
    const size_t before = mallinfo2().uordblks;
    for (int i = 0; i < kLooks; ++i) CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(0), 507046);
    CHECK(mallinfo2().uordblks < before + kLooks);
  }
  CHECK_EQ(aclrtSynchronizeDeviceWithTimeout(0), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// An observer starts while threads are at work (for the thread sanitizer).
void watched_late() {
  using Listener = void (*)(const void* work);
  const auto listen =
      reinterpret_cast<void (*)(int, Listener)>(dlsym(RTLD_DEFAULT, "openaclnn_listen_to_work"));
  CHECK(listen != nullptr);
  static std::atomic<int> reported;
  std::atomic<bool> begun = false, stop = false;
  std::thread worker([&] {
    char from[8] = {}, to[8] = {};
    CHECK_EQ(aclrtSetDevice(0), 0);
    while (!stop) {
      CHECK_EQ(aclrtMemcpyAsync(to, 8, from, 8, ACL_MEMCPY_DEVICE_TO_DEVICE, nullptr), 0);
      begun = true;
    }
    CHECK_EQ(aclrtResetDevice(0), 0);
  });
  while (!begun) std::this_thread::yield();
  listen(0, [](const void*) { ++reported; });
  while (reported == 0) std::this_thread::yield();
  stop = true;
  worker.join();
  listen(0, nullptr);
}

// A chain of small and large tasks, which run inline and on the worker in turn: each link sees what
// the one before left.
void chain(aclrtStream stream) {
  constexpr size_t kLarge = 1 << 20;
  const auto within = ACL_MEMCPY_DEVICE_TO_DEVICE;
  void *a, *b;
  CHECK_EQ(aclrtMalloc(&a, kLarge, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMalloc(&b, kLarge, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  for (int i = 0; i < 40; ++i) {
    const size_t size = i % 3 == 0 ? kLarge : 64;
    CHECK_EQ(aclrtMemsetAsync(a, kLarge, i, size, stream), 0);
    CHECK_EQ(aclrtMemcpyAsync(b, kLarge, a, size, within, stream), 0);
    CHECK_EQ(aclrtMemsetAsync(a, kLarge, 0xFF, size, stream), 0);
    if (i % 4 == 0) {
      char ordinary = 0;  // not acl's: the call returns after the copy
      CHECK_EQ(aclrtMemcpyAsync(&ordinary, 1, b, 1, ACL_MEMCPY_DEVICE_TO_HOST, stream), 0);
      CHECK_EQ(ordinary, i);
    }
  }
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(static_cast<char*>(b)[63], 39);
  CHECK_EQ(static_cast<char*>(b)[kLarge - 1], 39);
  CHECK_EQ(aclrtFree(a), 0);
  CHECK_EQ(aclrtFree(b), 0);
}

void order() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  const auto own_stream = [] {
    CHECK_EQ(aclrtSetDevice(0), 0);
    aclrtStream stream;
    for (int i = 0; i < 5; ++i) {
      CHECK_EQ(aclrtCreateStream(&stream), 0);
      chain(stream);
      CHECK_EQ(aclrtSynchronizeDevice(), 0);
      CHECK_EQ(i % 2 == 0 ? aclrtDestroyStream(stream) : aclrtDestroyStreamForce(stream), 0);
    }
    CHECK_EQ(aclrtResetDevice(0), 0);
  };
  std::thread one(own_stream), two(own_stream);
  chain(nullptr);
  one.join();
  two.join();
  CHECK_EQ(aclrtResetDevice(0), 0);
}

// Destroying and resetting wait for what is queued; the forced form may drop it.
void endings() {
  constexpr size_t kSize = 8 << 20;
  void* p;
  aclrtStream stream;
  for (int i = 0; i < 6; ++i) {
    CHECK_EQ(aclrtSetDevice(0), 0);
    CHECK_EQ(aclrtMalloc(&p, kSize, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    CHECK_EQ(aclrtCreateStream(&stream), 0);
    for (int value = 0; value < 10; ++value) {
      CHECK_EQ(aclrtMemsetAsync(p, kSize, value, kSize, stream), 0);
    }
    if (i % 3 == 0) CHECK_EQ(aclrtDestroyStream(stream), 0);
    if (i % 3 == 1) CHECK_EQ(aclrtDestroyStreamForce(stream), 0);
    if (i == 2) CHECK_EQ(aclrtSynchronizeDevice(), 0);
    CHECK_EQ(aclrtResetDevice(0), 0);
    if (i % 3 != 1) CHECK_EQ(static_cast<char*>(p)[kSize - 1], 9);
    if (i % 3 == 2) CHECK_EQ(aclrtDestroyStream(stream), 0);
    CHECK_EQ(aclrtFree(p), 0);
  }
}

// Two threads submit to one stream; neither loses work.
void shared_stream() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  aclrtStream stream;
  aclrtContext context;
  void* p;
  constexpr size_t kSize = 1 << 20;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtGetCurrentContext(&context), 0);
  CHECK_EQ(aclrtMalloc(&p, 2 * kSize, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  const auto fill = [=](char* part) {
    CHECK_EQ(aclrtSetCurrentContext(context), 0);
    for (int i = 0; i < 300; ++i) {
      CHECK_EQ(aclrtMemsetAsync(part, kSize, i % 100, i % 10 == 9 ? kSize : 32, stream), 0);
    }
  };
  std::thread one(fill, static_cast<char*>(p)), two(fill, static_cast<char*>(p) + kSize);
  one.join();
  two.join();
  CHECK_EQ(aclrtSynchronizeDevice(), 0);
  CHECK_EQ(static_cast<char*>(p)[0], 99);
  CHECK_EQ(static_cast<char*>(p)[2 * kSize - 1], 99);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtFree(p), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

}  // namespace

int main() {
  memory();
  alignment();
  copies();
  looking_costs_nothing();
  watched_late();
  order();
  endings();
  shared_stream();
  return check_result();
}
