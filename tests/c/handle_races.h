// SPDX-License-Identifier: Apache-2.0
// Threads use and destroy the same handles of a kind at once. Each call does its work or returns an
// error with a sentence; none touches what another has freed. Runs under the sanitizers too.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

// A kind of object: its handles are made, used and destroyed in any order.
struct Kind {
  const char* name;
  std::function<void*()> make;
  std::vector<std::function<int(void*, void*)>> uses;  // of two handles of the kind
  std::function<int(void*)> end;
};

template <class T>
T* as(void* handle) {
  return static_cast<T*>(handle);
}

// A function without a status: any result will do.
template <class R>
int any(const R&) {
  return 0;
}

// The seed of all races: the first word of the command line, or a fresh one.
inline unsigned seed_of(int count, char** words) {
  const unsigned seed = count > 1 ? static_cast<unsigned>(std::strtoul(words[1], nullptr, 10))
                                  : std::random_device{}();
  std::printf("seed %u\n", seed);
  std::fflush(stdout);
  return seed;
}

// Any thread may end any handle; nobody takes it out of the list but who makes another.
inline void race(const Kind& kind, unsigned seed) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kDuration = std::chrono::milliseconds(250);
  constexpr int kThreads = 4;
  constexpr size_t kShared = 4;  // handles that all threads use
  std::atomic<void*> handles[kShared];
  for (auto& handle : handles) handle = kind.make();
  std::atomic<int> done{0}, silent{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      CHECK_EQ(aclrtSetDevice(0), 0);
      std::mt19937 random(seed + static_cast<unsigned>(i));
      const auto judge = [&](int code) {
        if (code == 0) ++done;
        const char* const sentence = aclGetRecentErrMsg();
        if (code != 0 && (sentence == nullptr || *sentence == '\0')) ++silent;
      };
      const auto until = Clock::now() + kDuration;
      while (Clock::now() < until) {
        auto& place = handles[random() % kShared];
        const unsigned what = random() % 10;
        if (what == 0) judge(kind.end(place));
        if (what == 1) judge(kind.end(place.exchange(kind.make())));
        if (what > 1)
          judge(kind.uses[random() % kind.uses.size()](place, handles[random() % kShared]));
      }
      CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& handle : handles) (void)kind.end(handle);
  (void)aclGetRecentErrMsg();
  CHECK(done > 0);
  CHECK_EQ(silent, 0);
  if (check_failures != 0) std::fprintf(stderr, "%s, seed %u\n", kind.name, seed);
}
