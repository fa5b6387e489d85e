// SPDX-License-Identifier: Apache-2.0
// parallel_for: on torch's threads in a process that has torch, else on a pool.
//
//   parallel_for(items, grain, [&](int64_t begin, int64_t end) { … });
//
// [0, n) is split among at most num_threads() threads, about `grain` items or more for each. The
// caller takes part. If the pool is busy (another stream, a nested call), the caller runs
// everything itself. If torch is loaded, a region that starts on a thread of the program runs on
// torch's threads (below), at most torch.set_num_threads. Results must not depend on which thread
// runs an item.
#pragma once

#include <cstdint>

namespace openaclnn {

using RangeFunction = void (*)(void* context, int64_t begin, int64_t end);

// On return all stores of the ranges are visible, streaming ones too.
void parallel_for(int64_t n, int64_t grain, RangeFunction function, void* context);

template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  parallel_for(
      n, grain,
      [](void* context, int64_t begin, int64_t end) { (*static_cast<F*>(context))(begin, end); },
      &f);
}

// OPENACLNN_NUM_THREADS, or else the number of CPUs in the affinity mask of the process.
int num_threads();
void set_num_threads(int count);  // 1 … kMaxThreads, values outside are clamped

inline constexpr int kMaxThreads = 256;

// ---- torch's threads, in a process that has torch (parallel_torch.cpp) ----
//
// The OpenMP threads of torch spin for milliseconds after their last work. A second set of threads
// has to share the cores with them: on two cores, in a loop "torch add, then leaky_relu" over 1 Mi
// fp32 values, leaky_relu took 332 us with threads of our own and 148 us with torch's (torch's
// leaky_relu: 149 us). So a region that starts on a thread which calls torch runs on torch's
// threads. The two C functions that this takes belong to libtorch_cpu since torch 2.10 and are
// looked up in the library that the process has loaded: nothing is linked, and nothing is loaded.

// How many threads torch gives to a region that starts on the calling thread, at least 1. It is 0
// where the region is not for torch's threads:
//   * the process has no torch, or one older than 2.10;
//   * the thread does not call torch, as far as we know. Each thread that starts an OpenMP region
//     gets its own team, so a thread that never calls torch would add a team for nothing. The
//     main thread counts as one that calls torch, other threads when they say so (below);
//   * the process was forked and did not exec since: torch's OpenMP hangs in such a child;
//   * OPENACLNN_TORCH_THREADS is 0.
int torch_threads();

// Marks the calling thread as one that calls torch: it passed a torch tensor, for example.
void this_thread_calls_torch();

// Calls part(context, begin, end) for ranges that make up [0, parts), on as many threads of torch,
// or on the calling thread where that is inside a region of torch already. False when torch failed
// before all parts were done.
using PartFunction = void (*)(void* context, int64_t begin, int64_t end);
bool run_on_torch(int64_t parts, PartFunction part, void* context);

}  // namespace openaclnn
