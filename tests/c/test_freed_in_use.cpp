// SPDX-License-Identifier: Apache-2.0
// Memory that a program frees, unmaps or releases while queued or running work uses it: that work
// still has it, the process lives, and afterwards the memory is gone. Runs under the sanitizers
// too.
#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "gate.h"
#include "memory_pages.h"
#include "rounds.h"
#include "virtual_memory.h"

namespace {

const auto any = ACL_MEM_MALLOC_HUGE_FIRST;

struct Kind {
  const char* name;
  size_t size;
  int (*allocate)(void** address, size_t size);
  int (*free)(void* address);
};

int allocate(void** address, size_t size) { return aclrtMalloc(address, size, any); }
int allocate_managed(void** address, size_t size) {
  return aclrtMemAllocManaged(address, size, ACL_RT_MEM_ATTACH_GLOBAL);
}

const Kind kKinds[] = {{"large", kLarge, allocate, aclrtFree},
                       {"small", 256, allocate, aclrtFree},
                       {"managed", kLarge, allocate_managed, aclrtFree},
                       {"host", kLarge, aclrtMallocHost, aclrtFreeHost},
                       {"small host", 256, aclrtMallocHost, aclrtFreeHost}};

aclTensor* tensor_at(void* data, int64_t count) {
  return aclCreateTensor(&count, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &count, 1, data);
}

// y = LeakyRelu(x), slope 0.5, on a stream.
void submit_operator(void* x, void* y, int64_t count, aclrtStream stream) {
  float half = 0.5f;
  aclScalar* slope = aclCreateScalar(&half, ACL_FLOAT);
  aclTensor *in = tensor_at(x, count), *out = tensor_at(y, count);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_EQ(aclnnLeakyReluGetWorkspaceSize(in, slope, out, &size, &executor), 0);
  CHECK_EQ(aclnnLeakyRelu(nullptr, size, executor, stream), 0);
  CHECK_EQ(aclDestroyTensor(in), 0);
  CHECK_EQ(aclDestroyTensor(out), 0);
  CHECK_EQ(aclDestroyScalar(slope), 0);
}

// Queued: an operator and a copy read the freed memory, a fill writes it; nothing else gets it
// meanwhile.
void queued(const Kind& kind) {
  aclrtStream stream = nullptr;
  void *x = nullptr, *y = nullptr, *copy = nullptr, *other = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(kind.allocate(&x, kind.size), 0);
  CHECK_EQ(aclrtMalloc(&y, kind.size, any), 0);
  CHECK_EQ(aclrtMalloc(&copy, kind.size, any), 0);
  const auto count = static_cast<int64_t>(kind.size / sizeof(float));
  auto* numbers = static_cast<float*>(x);
  for (int64_t i = 0; i < count; ++i) numbers[i] = i % 2 == 0 ? 3.0f : -4.0f;
  {
    Gate gate(stream);
    submit_operator(x, y, count, stream);
    CHECK_EQ(aclrtMemcpyAsync(copy, kind.size, x, kind.size, ACL_MEMCPY_DEFAULT, stream), 0);
    CHECK_EQ(aclrtMemsetAsync(x, kind.size, 9, kind.size, stream), 0);
    CHECK_EQ(kind.free(x), 0);
    CHECK_FAILS(kind.free(x), 107000, "is not the start of an allocation");
    CHECK_EQ(kind.allocate(&other, kind.size), 0);
    CHECK(other != x);
    CHECK(is_there(x));
    std::memset(other, 0, kind.size);
  }
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  const auto *result = static_cast<const float*>(y), *copied = static_cast<const float*>(copy);
  for (const int64_t i : {int64_t{0}, int64_t{1}, count - 2, count - 1}) {
    CHECK_EQ(result[i], i % 2 == 0 ? 3.0f : -2.0f);
    CHECK_EQ(copied[i], i % 2 == 0 ? 3.0f : -4.0f);
  }
  CHECK_EQ(static_cast<const char*>(other)[kind.size - 1], 0);
  if (kind.size == kLarge && !kAllocatorKeeps) CHECK(!is_there(x));
  CHECK_EQ(kind.free(other), 0);
  CHECK_EQ(aclrtFree(y), 0);
  CHECK_EQ(aclrtFree(copy), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

// The work may be on any stream, and may be running.
void running() {
  aclrtStream streams[2];
  void* x = nullptr;
  for (auto& stream : streams) CHECK_EQ(aclrtCreateStream(&stream), 0);
  for (int round = 0; round < 20; ++round) {
    CHECK_EQ(aclrtMalloc(&x, kLarge, any), 0);
    const size_t half = kLarge / 2;
    CHECK_EQ(aclrtMemsetAsync(x, half, round, half, streams[0]), 0);
    CHECK_EQ(aclrtMemsetAsync(static_cast<char*>(x) + half, half, round, half, streams[1]), 0);
    CHECK_EQ(aclrtFree(x), 0);
  }
  for (auto& stream : streams) {
    CHECK_EQ(aclrtSynchronizeStream(stream), 0);
    CHECK_EQ(aclrtDestroyStream(stream), 0);
  }
  if (!kAllocatorKeeps) CHECK(!is_there(x));
}

// Work that is dropped frees the memory too, but not before the task that runs has ended.
void dropped(bool by_abort) {
  for (int round = 0; round < 20; ++round) {
    aclrtStream stream = nullptr;
    void *x = nullptr, *y = nullptr;
    CHECK_EQ(aclrtCreateStream(&stream), 0);
    CHECK_EQ(aclrtMalloc(&x, kLarge, any), 0);
    CHECK_EQ(aclrtMalloc(&y, 256, any), 0);
    CHECK_EQ(aclrtMemsetAsync(x, kLarge, 1, kLarge, stream), 0);
    CHECK_EQ(aclrtMemsetAsync(y, 256, 1, 256, stream), 0);
    CHECK_EQ(aclrtFree(x), 0);
    CHECK_EQ(aclrtFree(y), 0);
    if (by_abort) {
      CHECK_EQ(aclrtStreamAbort(stream), 0);
      CHECK_EQ(aclrtDestroyStream(stream), 0);
    } else {
      CHECK_EQ(aclrtDestroyStreamForce(stream), 0);
    }
    if (!kAllocatorKeeps) CHECK(!is_there(x));
  }
}

// A mapping that is unmapped, mapped to other memory and released while work is queued.
void mapped() {
  aclrtStream stream = nullptr;
  void* y = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtMalloc(&y, kGranule, any), 0);
  char* base = reserve(4 * kGranule);
  const aclrtDrvMemHandle first = physical(2 * kGranule), second = physical(kGranule);
  CHECK_EQ(aclrtMapMem(base, 2 * kGranule, 0, first, 0), 0);
  CHECK_EQ(aclrtMemset(base, 2 * kGranule, 5, 2 * kGranule), 0);
  {
    Gate gate(stream);
    CHECK_EQ(aclrtMemcpyAsync(y, kGranule, base + kGranule, kGranule, ACL_MEMCPY_DEFAULT, stream),
             0);
    CHECK_EQ(aclrtMemsetAsync(base, 2 * kGranule, 6, 2 * kGranule, stream), 0);
    CHECK_EQ(aclrtUnmapMem(base), 0);
    CHECK_EQ(aclrtFreePhysical(first), 0);
    CHECK_FAILS(aclrtUnmapMem(base), 107000, "no mapping begins at virPtr");
    CHECK_FAILS(aclrtMemset(base, 1, 0, 1), 107000, "nothing is mapped");
    CHECK_EQ(aclrtMapMem(base, kGranule, 0, second, 0), 0);  // where work still writes
  }
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(first_byte(static_cast<char*>(y) + kGranule - 1), 5);
  CHECK_EQ(first_byte(base + kGranule - 1), 6);  // what was mapped stays
  CHECK(!is_there(base + kGranule));
  {
    Gate gate(stream);
    CHECK_EQ(aclrtMemsetAsync(base, kGranule, 7, kGranule, stream), 0);
    CHECK_EQ(aclrtUnmapMem(base), 0);
    CHECK_EQ(aclrtReleaseMemAddress(base), 0);
    CHECK_FAILS(aclrtReleaseMemAddress(base), 107000, "no reservation begins at virPtr");
  }
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK(!is_there(base));
  CHECK_EQ(aclrtFreePhysical(second), 0);
  CHECK_EQ(aclrtFree(y), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

// Waiting in aclrtFree would be a deadlock: the work waits for what this thread does afterwards.
void waiting_for_the_host() {
  aclrtStream stream = nullptr;
  aclrtNotify notify = nullptr;
  void* x = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
  CHECK_EQ(aclrtMalloc(&x, kLarge, any), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 0), 0);
  CHECK_EQ(aclrtMemsetAsync(x, kLarge, 1, kLarge, stream), 0);
  CHECK_EQ(aclrtFree(x), 0);
  CHECK_EQ(aclrtRecordNotify(notify, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(aclrtDestroyNotify(notify), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

// Threads use and free their memory on streams that all share.
void raced() {
  const unsigned seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  aclrtStream streams[3];
  for (auto& stream : streams) CHECK_EQ(aclrtCreateStream(&stream), 0);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      CHECK_EQ(aclrtSetDevice(0), 0);
      std::mt19937 random(seed + i);
      for (Rounds rounds(300, 5); !rounds.last();) {
        rounds.begin();
        void* x = nullptr;
        const size_t half = size_t{64} << random() % 15;
        CHECK_EQ(aclrtMalloc(&x, 2 * half, any), 0);
        auto* second = static_cast<char*>(x) + half;
        const auto use = [&] { return streams[random() % 3]; };
        CHECK_EQ(aclrtMemsetAsync(x, half, 1, half, use()), 0);
        submit_operator(second, second, static_cast<int64_t>(half / sizeof(float)), use());
        if (random() % 8 == 0) (void)aclrtStreamAbort(use());
        CHECK_EQ(aclrtFree(x), 0);
      }
      CHECK_EQ(aclrtResetDevice(0), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& stream : streams) CHECK_EQ(aclrtDestroyStream(stream), 0);
}

}  // namespace

int main() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  for (const Kind& kind : kKinds) {
    const int before = check_failures;
    queued(kind);
    if (check_failures != before) std::fprintf(stderr, "of %s memory\n", kind.name);
  }
  running();
  dropped(false);
  dropped(true);
  mapped();
  waiting_for_the_host();
  raced();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}
