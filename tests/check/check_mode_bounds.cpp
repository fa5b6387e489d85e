// SPDX-License-Identifier: Apache-2.0
// Programs use exactly the memory that one call allocated, less, more, what rounding up has
// reserved, and one element more than that. tests/check/test_values.py computes what must come
// of each line:
//
//   case allocator way allocated used status        bytes; the status of the call
//
// Each case has its own process, since a mistake is reported once for its place. With any
// argument operators are left out: without check mode nothing keeps them inside an allocation.
#include <sys/wait.h>
#include <unistd.h>

#include "../../examples/mistakes/mistake.h"

namespace {

using Allocate = aclError (*)(void**, size_t, aclrtMemMallocPolicy);

constexpr size_t kUnit = 32, kElement = sizeof(float);
constexpr size_t kPlenty = 4096;
char host[kPlenty];

aclError allocate_host(void** address, size_t bytes, aclrtMemMallocPolicy) {
  return aclrtMallocHost(address, bytes);
}

void* made(Allocate allocate, size_t bytes) {
  void* memory = nullptr;
  must(allocate(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  must(aclrtMemset(memory, bytes, 0, bytes));
  return memory;
}

// Its status, without a word about a refusal.
int run(void* x, void* y, size_t bytes) {
  const auto length = static_cast<int64_t>(bytes / kElement);
  aclTensor *self = tensor(x, length), *out = tensor(y, length);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  must(aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor));
  const int status = aclnnLeakyRelu(nullptr, size, executor, nullptr);
  if (status != 0) must(aclDestroyAclOpExecutor(executor));
  must(aclrtSynchronizeStream(nullptr));
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  return status;
}

struct Way {
  const char* name;
  int (*use)(void* memory, void* other, size_t bytes);  // `other` is device memory of plenty bytes
};

const Way kWays[] = {
    {"operator_reads", [](void* m, void* other, size_t n) { return run(m, other, n); }},
    {"operator_writes", [](void* m, void* other, size_t n) { return run(other, m, n); }},
    {"copy_in",
     [](void* m, void*, size_t n) {
       return aclrtMemcpy(m, kPlenty, host, n, ACL_MEMCPY_HOST_TO_DEVICE);
     }},
    {"copy_out",
     [](void* m, void*, size_t n) {
       return aclrtMemcpy(host, kPlenty, m, n, ACL_MEMCPY_DEVICE_TO_HOST);
     }},
    {"copy_to",
     [](void* m, void* other, size_t n) {
       return aclrtMemcpy(m, kPlenty, other, n, ACL_MEMCPY_DEVICE_TO_DEVICE);
     }},
    {"copy_from_async",
     [](void* m, void* other, size_t n) {
       return aclrtMemcpyAsync(other, kPlenty, m, n, ACL_MEMCPY_DEVICE_TO_DEVICE, nullptr);
     }},
    {"fill", [](void* m, void*, size_t n) { return aclrtMemset(m, kPlenty, 1, n); }},
    {"fill_async",
     [](void* m, void*, size_t n) { return aclrtMemsetAsync(m, kPlenty, 1, n, nullptr); }},
};
const Way kHostWays[] = {
    {"copy_from_host",
     [](void* m, void* other, size_t n) {
       return aclrtMemcpy(other, kPlenty, m, n, ACL_MEMCPY_HOST_TO_DEVICE);
     }},
    {"copy_to_host",
     [](void* m, void* other, size_t n) {
       return aclrtMemcpy(m, kPlenty, other, n, ACL_MEMCPY_DEVICE_TO_HOST);
     }},
};

void try_one(const char* allocator, Allocate allocate, const Way& way, size_t bytes, size_t used) {
  const pid_t child = fork();
  if (child == 0) {
    begin();
    void *memory = made(allocate, bytes), *other = made(aclrtMalloc, kPlenty);
    const int status = way.use(memory, other, used);
    must(aclrtSynchronizeStream(nullptr));
    std::fprintf(stderr, "case %s %s %zu %zu %d\n", allocator, way.name, bytes, used, status);
    if (status != 0) std::fprintf(stderr, "sentence %s", aclGetRecentErrMsg());
    must(allocate == allocate_host ? aclrtFreeHost(memory) : aclrtFree(memory));
    must(aclrtFree(other));
    end();
    std::exit(0);
  }
  waitpid(child, nullptr, 0);
}

}  // namespace

int main(int count, char**) {
  const bool operators = count == 1;
  const struct {
    const char* name;
    Allocate allocate;
    size_t spare;
  } kAllocators[] = {{"aclrtMalloc", aclrtMalloc, kUnit},
                     {"aclrtMallocCached", aclrtMallocCached, kUnit},
                     {"aclrtMallocAlign32", aclrtMallocAlign32, 0},
                     {"aclrtMallocHost", allocate_host, 0}};
  for (const auto& each : kAllocators) {
    for (const size_t units : {1, 2, 9}) {
      for (const size_t bytes : {kUnit * units - 3 * kElement, kUnit * units - kElement,
                                 kUnit * units, kUnit * units + kElement}) {
        const size_t reserved = (bytes + kUnit - 1) / kUnit * kUnit + each.spare;
        for (const size_t used :
             {bytes - kElement, bytes, bytes + kElement, reserved, reserved + kElement}) {
          if (each.allocate == allocate_host) {
            for (const Way& way : kHostWays) try_one(each.name, each.allocate, way, bytes, used);
          } else {
            for (const Way& way : kWays) {
              if (!operators && way.name[0] == 'o') continue;
              try_one(each.name, each.allocate, way, bytes, used);
            }
          }
        }
      }
    }
  }
}
