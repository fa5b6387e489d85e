// SPDX-License-Identifier: Apache-2.0
// Many threads, each with many streams, run random operators on random views for as long as asked,
// and every result is compared byte for byte with the one that a single thread computed before.
//
//   soak [--seconds N] [--threads N] [--streams N] [--seed N]
//
// The calls are shared: any thread may run any of them, with an executor that another one made.
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "soak.h"

namespace fuzz {

constinit thread_local Run run;

void fault(const char* format, ...) {
  static std::mutex one;
  std::lock_guard lock(one);
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "\nseed %llu\n", static_cast<unsigned long long>(run.seed));
  std::_Exit(1);
}

void* garbage(Random& random) { return reinterpret_cast<void*>(random.below(4096) + 1); }

namespace {

class Worker {
 public:
  Worker(const Options& options, std::vector<std::unique_ptr<Problem>>& problems, Totals& totals,
         Contest& contest, size_t number)
      : random_(options.seed * 1000 + number),
        problems_(problems),
        totals_(totals),
        contest_(contest),
        first_(number == 0) {
    run.seed = options.seed;
    MUST(aclrtSetDevice, 0);
    lanes_.resize(options.streams);
    for (Lane& lane : lanes_) {
      MUST(aclrtCreateStream, &lane.stream);
      MUST(aclrtMalloc, &lane.chain.first, Chain::kBytes, ACL_MEM_MALLOC_NORMAL_ONLY);
      MUST(aclrtMalloc, &lane.chain.second, Chain::kBytes, ACL_MEM_MALLOC_NORMAL_ONLY);
    }
  }

  void step() {
    Lane& lane = random_.pick(lanes_);
    const uint64_t kind = random_.below(100);
    if (kind < 60) {
      submit(lane);
    } else if (kind < 80) {
      advance(lane);
    } else if (kind < 97) {
      finish(lane);
    } else if (kind < 98) {
      finish(lane);
      MUST(aclrtDestroyStream, lane.stream);
      MUST(aclrtCreateStream, &lane.stream);
    } else {
      refuse();
    }
  }

  // Returns false when the time is over, which the first thread decides.
  bool meet(bool over) {
    if (first_) call_contest(over);
    contest_.meeting.arrive_and_wait();
    if (contest_.over) return false;
    if (contest_.problem == nullptr) {
      contest_.meeting.arrive_and_wait();  // before the first thread calls the next one
      return true;
    }
    const Row& row = *contest_.problem->call.row;
    Lane& lane = random_.pick(lanes_);
    ++run.calls;
    const bool destroys = contest_.destroying && !first_;
    const aclnnStatus status = destroys ? aclDestroyAclOpExecutor(contest_.executor)
                                        : row.phase2(contest_.problem->workspace, contest_.size,
                                                     contest_.executor, lane.stream);
    if (status == ACLNN_SUCCESS && destroys == contest_.destroying) ++contest_.winners;
    if (status != ACLNN_SUCCESS) {
      const std::string message = CALL(aclGetRecentErrMsg);
      if (status != ACLNN_ERR_PARAM_INVALID || message.find("executor") == std::string::npos) {
        fault("%s, with others: %d, %s", row.name, status, message.c_str());
      }
    }
    finish(lane);
    contest_.meeting.arrive_and_wait();
    if (first_) judge_contest(status == ACLNN_SUCCESS);
    return true;
  }

  void end() {
    for (Lane& lane : lanes_) {
      finish(lane);
      MUST(aclrtDestroyStream, lane.stream);
      MUST(aclrtFree, lane.chain.first);
      MUST(aclrtFree, lane.chain.second);
    }
    MUST(aclrtResetDevice, 0);
    totals_.calls += run.calls;
  }

 private:
  void call_contest(bool over) {
    Contest& c = contest_;
    Problem* p = random_.pick(problems_).get();
    c.over = over;
    c.problem = over || p->taken.exchange(true) ? nullptr : p;
    if (c.problem == nullptr) return;
    restore(p->before);
    c.winners = 0;
    c.destroying = random_.chance(50);
    ++run.calls;
    must(p->call.row->phase1(p->call.values.data(), &c.size, &c.executor), p->call.row->name);
    if (c.destroying) MUST(aclSetAclOpExecutorRepeatable, c.executor);
  }

  void judge_contest(bool ran) {
    const Contest& c = contest_;
    if (c.winners != 1) {
      fault("%s: one executor was %s by %d threads", c.problem->call.row->name,
            c.destroying ? "destroyed" : "run", c.winners.load());
    }
    if (ran || !c.destroying) compare(c.problem->call, c.problem->after);
    c.problem->taken = false;
    ++totals_.contests;
  }

  void submit(Lane& lane) {
    Problem& p = *random_.pick(problems_);
    if (p.taken.exchange(true)) return;
    restore(p.before);
    const Row& row = *p.call.row;
    aclOpExecutor* executor = std::exchange(p.kept, nullptr);
    uint64_t size = p.call.workspace_size;
    if (executor == nullptr) {
      ++run.calls;
      must(row.phase1(p.call.values.data(), &size, &executor), row.name);
      if (random_.chance(50)) {
        MUST(aclSetAclOpExecutorRepeatable, executor);
        p.kept = executor;
      }
    } else if (random_.chance(20)) {  // for the last time
      ++run.calls;
      must(row.phase2(p.workspace, size, executor, lane.stream), row.name);
      MUST(aclDestroyAclOpExecutor, executor);
      lane.running.push_back(&p);
      return;
    } else {
      p.kept = executor;
    }
    ++run.calls;
    must(row.phase2(p.workspace, size, executor, lane.stream), row.name);
    lane.running.push_back(&p);
  }

  void advance(Lane& lane) {
    Chain& chain = lane.chain;
    for (int i = 0; i < 3; ++i) {
      chain.value = (chain.value + 1) & 127;
      MUST(aclrtMemsetAsync, chain.first, Chain::kBytes, chain.value, Chain::kBytes, lane.stream);
      MUST(aclrtMemcpyAsync, chain.second, Chain::kBytes, chain.first, Chain::kBytes,
           ACL_MEMCPY_DEVICE_TO_DEVICE, lane.stream);
    }
  }

  void finish(Lane& lane) {
    MUST(aclrtSynchronizeStream, lane.stream);
    for (Problem* p : lane.running) {
      compare(p->call, p->after);
      p->taken = false;
      ++totals_.runs;
    }
    lane.running.clear();
    if (lane.chain.value < 0) return;
    char bytes[Chain::kBytes];
    MUST(aclrtMemcpy, bytes, sizeof bytes, lane.chain.second, sizeof bytes,
         ACL_MEMCPY_DEVICE_TO_HOST);
    for (const char byte : bytes) {
      if (byte != lane.chain.value) fault("a chain ends with %d, not %d", byte, lane.chain.value);
    }
    ++totals_.chains;
  }

  // The sentence belongs to the thread, whatever the others do.
  void refuse() {
    const Row& row = random_.pick(rows);
    std::vector<Value> values(row.parameters.size(), Value{});
    aclOpExecutor* executor = nullptr;
    uint64_t size = 0;
    ++run.calls;
    const aclnnStatus status = row.phase1(values.data(), &size, &executor);
    const std::string message = CALL(aclGetRecentErrMsg);
    const size_t at = message.find(row.name);
    if (status != ACLNN_ERR_PARAM_NULLPTR || at == std::string::npos ||
        message.find("aclnn", at + 1) != std::string::npos) {
      fault("%s returned %d with \"%s\"", row.name, status, message.c_str());
    }
    ++totals_.refusals;
  }

  Random random_;
  std::vector<std::unique_ptr<Problem>>& problems_;
  Totals& totals_;
  Contest& contest_;
  const bool first_;
  std::vector<Lane> lanes_;
};

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i];
    const uint64_t number = std::strtoull(words[i + 1], nullptr, 10);
    if (word == "--seconds") {
      options.seconds = static_cast<double>(number);
    } else if (word == "--threads") {
      options.threads = number;
    } else if (word == "--streams") {
      options.streams = number;
    } else if (word == "--seed") {
      options.seed = number;
    } else {
      count = 0;
    }
  }
  if (count % 2 == 0) {
    std::fprintf(stderr, "soak [--seconds N] [--threads N] [--streams N] [--seed N]\n");
    std::exit(2);
  }
  return options;
}

}  // namespace
}  // namespace fuzz

int main(int count, char** words) {
  using namespace fuzz;
  const Options options = parse(count, words);
  std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
  run.seed = options.seed;
  MUST(aclInit, nullptr);
  MUST(aclrtSetDevice, 0);
  void* workspace = nullptr;
  MUST(aclrtMalloc, &workspace, kWorkspace, ACL_MEM_MALLOC_HUGE_FIRST);
  Random random(options.seed);
  std::vector<std::unique_ptr<Problem>> problems;
  while (problems.size() < 4 * options.threads) {
    auto p = std::make_unique<Problem>();
    if (prepare(random, *p, workspace)) problems.push_back(std::move(p));
  }
  Totals totals;
  Contest contest(options.threads);
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                       std::chrono::duration<double>(options.seconds));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.threads; ++i) {
    threads.emplace_back([&, i] {
      Worker worker(options, problems, totals, contest, i);
      do {
        for (int step = 0; step < 50; ++step) worker.step();
      } while (worker.meet(std::chrono::steady_clock::now() >= end));
      worker.end();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& p : problems) {
    if (p->kept != nullptr) MUST(aclDestroyAclOpExecutor, p->kept);
    if (p->workspace != nullptr) MUST(aclrtFree, p->workspace);
    destroy_made(p->call);
  }
  MUST(aclrtFree, workspace);
  MUST(aclrtResetDevice, 0);
  MUST(aclFinalize);
  std::printf(
      "%zu threads x %zu streams, %.0f s: %llu operators and %llu chains verified, "
      "%llu refusals, %llu contests, %llu calls\n",
      options.threads, options.streams, options.seconds,
      static_cast<unsigned long long>(totals.runs), static_cast<unsigned long long>(totals.chains),
      static_cast<unsigned long long>(totals.refusals),
      static_cast<unsigned long long>(totals.contests),
      static_cast<unsigned long long>(totals.calls));
  return totals.runs > 0 ? 0 : 1;
}
