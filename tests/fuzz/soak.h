// SPDX-License-Identifier: Apache-2.0
// What the threads of the soak test share: calls with known results, a contest, chains of copies.
#pragma once

#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "cases.h"

namespace fuzz {

struct Options {
  double seconds = 10;
  size_t threads = 16, streams = 8;
  uint64_t seed = std::random_device{}();
};

inline void must(int status, const char* call) {
  if (status != 0) fault("%s returned %d: %s", call, status, aclGetRecentErrMsg());
}
#define MUST(function, ...) must(CALL(function, __VA_ARGS__), #function)

// A call with its tensors, its memory before and after, and perhaps an executor to run again.
struct Problem {
  Arenas arenas;
  Case call;
  Memory before, after;
  void* workspace = nullptr;
  aclOpExecutor* kept = nullptr;
  std::atomic<bool> taken = false;
};

struct Totals {
  std::atomic<uint64_t> runs = 0, chains = 0, calls = 0, refusals = 0, contests = 0;
};

// All threads meet and use one executor at the same time. Either all give it to phase 2, and one
// must succeed; or the first thread runs it while the others destroy it, and one of them must
// succeed.
struct Contest {
  explicit Contest(size_t threads) : meeting(static_cast<ptrdiff_t>(threads)) {}

  std::barrier<> meeting;
  Problem* problem = nullptr;
  aclOpExecutor* executor = nullptr;
  uint64_t size = 0;
  bool destroying = false, over = false;
  std::atomic<int> winners = 0;
};

// Returns false when the rules of the row refuse the attributes that were drawn.
inline bool prepare(Random& random, Problem& p, void* workspace) {
  const Row& row = random.pick(rows);
  p.call = good_case(random, row, p.arenas);
  create_tensors(p.call);
  pass_tensors(p.call);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  if (row.phase1(p.call.values.data(), &size, &executor) != ACLNN_SUCCESS) {
    CALL(aclGetRecentErrMsg);
    destroy_made(p.call);
    return false;
  }
  MUST(aclDestroyAclOpExecutor, executor);
  p.call.workspace_size = size;
  if (size > 0) MUST(aclrtMalloc, &p.workspace, size, ACL_MEM_MALLOC_HUGE_FIRST);
  p.before = p.after = memory_of(p.call);
  expect(p.call, p.after, workspace);
  return true;
}

// A counter goes through two buffers of a stream; wrong order shows as a wrong number.
struct Chain {
  static constexpr size_t kBytes = 4096;
  void *first = nullptr, *second = nullptr;
  int value = -1;
};

struct Lane {
  aclrtStream stream = nullptr;
  std::vector<Problem*> running;
  Chain chain;
};

}  // namespace fuzz
