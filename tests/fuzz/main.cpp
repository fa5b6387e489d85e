// SPDX-License-Identifier: Apache-2.0
// A structured fuzzer of the C interface. Every case is made from the seed and its number alone.
//
//   fuzz [phases|sequences] [--seed N] [--seconds N] [--calls N] [--case N]
//
// Without a mode the two take turns. --case runs a single case of a seed again.
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/base/executor.h"
#include "core/base/list.h"
#include "core/base/scalar.h"
#include "core/base/tensor.h"
#include "core/runtime/device.h"
#include "core/runtime/event.h"
#include "core/memory/mapped_memory.h"
#include "core/runtime/stream.h"
#include "fuzz.h"

extern "C" void __sanitizer_set_death_callback(void (*)()) __attribute__((weak));

namespace fuzz {

constinit thread_local Run run;

namespace {

constexpr unsigned kHangSeconds = 60;

struct Options {
  std::string mode;
  uint64_t seed = std::random_device{}();
  uint64_t calls = UINT64_MAX;
  double seconds = 1e9;
  int64_t only = -1;
};

const Run* running = nullptr;  // that of the main thread: a stream may be the one to die

void print_where() {
  const Run& now = *running;
  std::fprintf(stderr, "in %s, case %llu: again with  fuzz %s --seed %llu --case %llu\n", now.last,
               static_cast<unsigned long long>(now.number), now.mode,
               static_cast<unsigned long long>(now.seed),
               static_cast<unsigned long long>(now.number));
}

void on_signal(int signal) {
  std::fprintf(stderr, "%s ", signal == SIGALRM ? "a case that does not end" : strsignal(signal));
  print_where();
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

void install_handlers() {
  running = &run;
  std::signal(SIGALRM, on_signal);
  std::signal(SIGABRT, on_signal);
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(print_where);
    return;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    std::signal(signal, on_signal);
  }
}

template <class T>
size_t count(openaclnn::HandlePool<T>& pool) {
  size_t alive = 0;
  pool.for_each([&alive](T&) { ++alive; });
  return alive;
}

// The objects that are alive inside the library.
struct Census {
  struct Entry {
    const char* name;
    size_t alive;
  };
  std::vector<Entry> entries = {
      {"tensors", count(openaclnn::tensors())},
      {"scalars", count(openaclnn::scalars())},
      {"int arrays", count(openaclnn::int_arrays())},
      {"float arrays", count(openaclnn::float_arrays())},
      {"bool arrays", count(openaclnn::bool_arrays())},
      {"tensor lists", count(openaclnn::tensor_lists())},
      {"scalar lists", count(openaclnn::scalar_lists())},
      {"executors", count(openaclnn::executors())},
      {"streams", count(openaclnn::streams())},
      {"events", count(openaclnn::events())},
      {"contexts", count(openaclnn::contexts())},
      {"physical memory", count(openaclnn::physical_memory())},
  };
};

void check_census(const Census& before) {
  const Census now;
  for (size_t i = 0; i < now.entries.size(); ++i) {
    if (now.entries[i].alive == before.entries[i].alive) continue;
    fault("%s: %zu were alive before the case, %zu are after it", now.entries[i].name,
          before.entries[i].alive, now.entries[i].alive);
  }
}

size_t heap_in_use() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// A case that runs alone makes the same calls; only the addresses behind its handles may differ.
void run_case(const char* mode) {
  run.mode = mode;
  Random random(run.seed * 0x2545f4914f6cdd1du + run.number * 0x9e3779b97f4a7c15u);
  alarm(kHangSeconds);
  const Census before;
  (std::strcmp(mode, "phases") == 0 ? fuzz_phases : fuzz_sequence)(random);
  check_census(before);
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "phases" || word == "sequences") {
      options.mode = word;
      continue;
    }
    const bool known =
        word == "--seed" || word == "--seconds" || word == "--calls" || word == "--case";
    if (!known || ++i == count) {
      std::fprintf(stderr,
                   "fuzz [phases|sequences] [--seed N] [--seconds N] [--calls N] [--case N]\n");
      std::exit(2);
    }
    if (word == "--seed") options.seed = std::strtoull(words[i], nullptr, 10);
    if (word == "--seconds") options.seconds = std::atof(words[i]);
    if (word == "--calls") options.calls = std::strtoull(words[i], nullptr, 10);
    if (word == "--case") options.only = std::atoll(words[i]);
  }
  return options;
}

// Heap in use may settle, but not grow with the number of cases. Single samples differ by up to
// 2 MiB, by what other threads hold just then, so the least of each third counts; and a pool may
// grow once, by 1 MiB, so only what grows from each third to the next is a leak.
void check_heap(const std::vector<size_t>& samples, size_t cases) {
  const size_t third = samples.size() / 3;
  if (third == 0) return;
  size_t least[3];
  for (size_t i = 0; i < 3; ++i) {
    const auto begin = samples.begin() + static_cast<std::ptrdiff_t>(i * third);
    least[i] = *std::min_element(begin, begin + static_cast<std::ptrdiff_t>(third));
  }
  std::printf("heap in use, least of each third: %zu, %zu, %zu bytes\n", least[0], least[1],
              least[2]);
  constexpr size_t kSettling = 128 << 10;
  if (least[1] > least[0] + kSettling && least[2] > least[1] + kSettling) {
    fault("the heap grew by %zu bytes in %zu cases", least[2] - least[0], cases / 3 * 2);
  }
}

}  // namespace

void fault(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputs("\n", stderr);
  print_where();
  std::fflush(stdout);
  std::_Exit(1);
}

void* garbage(Random& random) {
  static long inside_the_program[64];
  switch (random.below(6)) {
    case 0: return reinterpret_cast<void*>(random.below(4096) + 1);
    case 1: return reinterpret_cast<void*>(~uintptr_t{0} - random.below(64));
    case 2: return reinterpret_cast<void*>(random.next());
    case 3: return &inside_the_program[random.below(64)];
    case 4: return &random;  // on the stack
    default: return reinterpret_cast<void*>(uintptr_t{0x00007f0000000000} + random.below(1u << 30));
  }
}

}  // namespace fuzz

int main(int argument_count, char** words) {
  using namespace fuzz;
  const Options options = parse(argument_count, words);
  run.seed = options.seed;
  std::printf("seed %llu\n", static_cast<unsigned long long>(run.seed));
  std::fflush(stdout);
  install_handlers();
  start_phases();
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  constexpr const char* modes[] = {"phases", "sequences"};
  std::vector<size_t> heap;
  heap.reserve(100'000);
  uint64_t cases = 0;
  for (;; ++run.number, ++cases) {
    if (options.only >= 0) run.number = static_cast<uint64_t>(options.only);
    run_case(options.mode.empty() ? modes[run.number % 4 == 3] : options.mode.c_str());
    if (options.only >= 0 || elapsed() >= options.seconds || run.calls >= options.calls) break;
    if (cases >= 2000 && cases % 100 == 0) heap.push_back(heap_in_use());
  }
  alarm(0);
  stop_phases();
  std::printf(
      "%llu calls in %llu cases, %.0f s: phase 1 accepted %llu, refused %llu; phase 2 ran %llu, "
      "verified %llu\n",
      static_cast<unsigned long long>(run.calls), static_cast<unsigned long long>(cases + 1),
      elapsed(), static_cast<unsigned long long>(run.accepted),
      static_cast<unsigned long long>(run.refused), static_cast<unsigned long long>(run.executed),
      static_cast<unsigned long long>(run.verified));
  check_heap(heap, cases);
  return 0;
}
