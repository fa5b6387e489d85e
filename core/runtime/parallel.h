// SPDX-License-Identifier: Apache-2.0
// The threads of a process, behind one function: torch's where the process has torch, else a pool.
//
//   parallel_for(items, grain, [&](int64_t begin, int64_t end) { … });
//
// [0, n) is split among at most num_threads() threads, which get about `grain` items or more. The
// caller takes part; when the pool is busy with another caller (another stream, a nested call) the
// caller does all of it alone. A region that starts on a thread of the program runs on torch's
// threads if torch is loaded (torch_threads.h), at most as many as torch.set_num_threads allows.
// Which thread runs an item never changes a result: that is the duty of the items.
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

}  // namespace openaclnn
