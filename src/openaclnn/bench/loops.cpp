// SPDX-License-Identifier: Apache-2.0
// What the machine can do: copies and hand-written streaming loops, timed inside C between a common
// start and the last thread's end, so that no call and no dispatch is in the figure. timing.py
// compiles this with -O3 -march=native.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <sched.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

enum Kind { kCopy, kStreaming };

constexpr int64_t kLine = 64;
#if defined(__AVX512F__)
constexpr int kVector = 64;
#elif defined(__AVX__)
constexpr int kVector = 32;
#else
constexpr int kVector = 16;
#endif
template <class T>
using Vector [[gnu::vector_size(kVector)]] = T;

template <class V>
inline void stream_store(char* to, V v) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)v);
#elif defined(__AVX__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)v);
#elif defined(__x86_64__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(to), (__m128i)v);
#else
  std::memcpy(to, &v, sizeof v);
#endif
}

// y = x > 0 ? g : g * slope; with one input g is x.
template <class T, bool two>
void loop(const char* g, const char* x, char* y, int64_t bytes, T slope) {
  for (int64_t i = 0; i < bytes; i += kVector) {
    Vector<T> a, b;
    std::memcpy(&a, g + i, kVector);
    std::memcpy(&b, (two ? x : g) + i, kVector);
    stream_store(y + i, b > 0 ? a : a * slope);
  }
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

template <class T>
void pass(int kind, const char* g, const char* x, char* y, int64_t bytes, double slope) {
  if (kind == kCopy) {
    std::memcpy(y, g, bytes);
  } else {
    (x ? loop<T, true> : loop<T, false>)(g, x, y, bytes, slope);
  }
}

// Independent multiply-adds, as many as fill the pipes of a core.
float add_up(int times) {
  constexpr int kChains = 12;
  Vector<float> sum[kChains], by = Vector<float>{} + 0.999f;
  for (int k = 0; k < kChains; ++k) sum[k] = by * static_cast<float>(k);
  for (int i = 0; i < times; ++i) {
    for (int k = 0; k < kChains; ++k) sum[k] = sum[k] * by + by;
  }
  float all = 0;
  for (int k = 0; k < kChains; ++k) all += sum[k][0];
  return all;
}

}  // namespace

// The longest time that the same arithmetic takes on one of `threads` CPUs, each of them if there
// are no more: it grows where another virtual machine runs on the same core.
extern "C" double arithmetic(int threads) {
  cpu_set_t mine;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof mine, &mine) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mine)) cpus.push_back(cpu);
    }
  }
  const bool pin = static_cast<int>(cpus.size()) == threads;
  std::vector<double> seconds(threads);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      if (pin) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpus[i], &one);
        sched_setaffinity(0, sizeof one, &one);
      }
      const auto begin = std::chrono::steady_clock::now();
      volatile float result = add_up(50000);
      (void)result;
      seconds[i] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    });
  }
  for (std::thread& worker : workers) worker.join();
  return *std::max_element(seconds.begin(), seconds.end());
}

// Seconds for `repeats` passes over `bytes` of each array, an equal share for each thread; x may be
// null. Whole lines only. item is the size of an element, 4 or 8 (halves go in pairs: the traffic
// is what counts).
extern "C" double stream(int kind, int item, const char* g, const char* x, char* y, int64_t bytes,
                         int threads, double slope, int64_t repeats) {
  const int64_t lines = bytes / kLine;
  std::atomic<int> ready{0};
  std::chrono::steady_clock::time_point begin;
  auto work = [&](int i) {
    const int64_t from = lines * i / threads * kLine,
                  size = lines * (i + 1) / threads * kLine - from;
    const auto once = item == 8 ? pass<double> : pass<float>;
    once(kind, g + from, x ? x + from : x, y + from, size, slope);
    ready.fetch_add(1);
    while (ready.load() < threads) {
    }
    if (i == 0) begin = std::chrono::steady_clock::now();
    for (int64_t k = 0; k < repeats; ++k) {
      once(kind, g + from, x ? x + from : x, y + from, size, slope);
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work, i);
  work(0);
  for (std::thread& other : others) other.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
