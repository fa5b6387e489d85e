// SPDX-License-Identifier: Apache-2.0
// Several threads give phase 2 the same executors, each at the same moment.
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

using Run = int (*)(void* workspace, uint64_t size, void* executor, void* stream);

// How many executors were not run exactly once.
extern "C" int openaclnn_race(Run run, void** executors, int count, void* stream) {
  constexpr int kThreads = 2;
  std::atomic<int> arrived = 0, wrong = 0;
  std::vector<std::atomic<int>> ran(static_cast<size_t>(count));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < count; ++i) {
        ++arrived;
        while (arrived < kThreads * (i + 1)) {
        }
        const int status = run(nullptr, 0, executors[i], stream);
        if (status == 0) ++ran[static_cast<size_t>(i)];
        if (status != 0 && status != 161002) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>& times : ran) wrong += times != 1;
  return wrong;
}
