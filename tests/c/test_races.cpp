// SPDX-License-Identifier: Apache-2.0
// Threads use one executor at the same time: what can happen once succeeds in one of them, and none
// uses an executor that another one has ended. Runs under the thread sanitizer too.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"
#include "rounds.h"

namespace {

constexpr int64_t kElements = 8192;  // brief, but long enough to be met in

// aclnnLeakyRelu from `x` to `y`, as often as wanted.
struct Call {
  explicit Call(float from = -2) : x(kElements, from), y(kElements, 0) {
    const int64_t n = kElements;
    self = aclCreateTensor(&n, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &n, 1, x.data());
    out = aclCreateTensor(&n, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &n, 1, y.data());
    float value = 0.5f;
    slope = aclCreateScalar(&value, ACL_FLOAT);
    CHECK(self != nullptr && out != nullptr && slope != nullptr);
    CHECK_EQ(aclrtCreateStream(&stream), 0);
  }
  ~Call() {
    CHECK_EQ(aclrtDestroyStream(stream), 0);
    CHECK_EQ(aclDestroyTensor(self), 0);
    CHECK_EQ(aclDestroyTensor(out), 0);
    CHECK_EQ(aclDestroyScalar(slope), 0);
  }
  Call(const Call&) = delete;

  aclOpExecutor* plan(bool repeatable = false) const {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK_EQ(aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor), 0);
    if (repeatable) CHECK_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
    return executor;
  }

  std::vector<float> x, y;
  aclTensor *self, *out;
  aclScalar* slope;
  aclrtStream stream;  // of a thread: brief work runs on the thread that calls
};

// Where threads meet, again and again: they wait awake, so that they go on at the same time.
class Meeting {
 public:
  explicit Meeting(int count) : count_(count) {}
  void meet() {
    const int round = round_;
    if (++here_ == count_) {
      here_ = 0;
      ++round_;
    }
    for (int spins = 0; round_ == round; ++spins) {
      if (spins > 5000) std::this_thread::yield();
    }
  }

 private:
  const int count_;
  std::atomic<int> here_{0}, round_{0};
};

// Runs f(i, meeting) on `count` threads that begin together.
void run_together(int count, const std::function<void(int, Meeting&)>& f) {
  Meeting meeting(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      CHECK_EQ(aclrtSetDevice(0), 0);
      meeting.meet();
      f(i, meeting);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

constexpr int kThreads = 3;
constexpr int kSeconds = 2;  // for the rounds of each race

// Threads give phase 2 the same executors, each on its stream, while the last thread plans and runs
// others, so that what is ended is soon another executor; not so many that a handle comes again.
int one_wins() {
  constexpr int kExecutors = 16, kOthers = 40;
  std::array<Call, kThreads> calls;
  std::array<Call, kExecutors> targets;
  std::array<aclOpExecutor*, kExecutors> executors;
  std::array<std::atomic<int>, kExecutors> winners;
  int wrong = 0;
  Rounds rounds(3000, kSeconds);
  run_together(kThreads, [&](int i, Meeting& meeting) {
    for (bool last = false; !last;) {
      if (i == 0) {
        rounds.begin();
        for (int k = 0; k < kExecutors; ++k) {
          executors[k] = targets[k].plan();
          winners[k] = 0;
        }
      }
      meeting.meet();
      last = rounds.last();
      if (i == kThreads - 1) {
        aclOpExecutor* own[kOthers];
        for (auto& e : own) e = calls[i].plan();
        for (auto& e : own) CHECK_EQ(aclnnLeakyRelu(nullptr, 0, e, calls[i].stream), 0);
      } else {
        for (int k = 0; k < kExecutors; ++k) {
          const aclnnStatus status = aclnnLeakyRelu(nullptr, 0, executors[k], calls[i].stream);
          if (status == 0) {
            ++winners[k];
          } else {
            CHECK_FAILS(status, 161002, "already run, destroyed or never created");
          }
        }
      }
      meeting.meet();
      for (int k = 0; i == 0 && k < kExecutors; ++k) wrong += winners[k] != 1;
    }
  });
  CHECK_EQ(wrong, 0);
  for (const Call& target : targets) CHECK_EQ(target.y[kElements - 1], -1.0f);
  return rounds.done();
}

// Phase 2 and aclDestroyAclOpExecutor of a repeatable executor: a run that began ends well, and the
// thread that destroys gets its turn while others run the executor again and again.
int destroying() {
  std::array<Call, kThreads> calls;
  aclOpExecutor* executor = nullptr;
  std::atomic<bool> destroyed{false}, ran{false};
  std::array<std::atomic<int64_t>, 1000> runs{};
  Rounds rounds(runs.size(), kSeconds);
  run_together(kThreads, [&](int i, Meeting& meeting) {
    for (bool last = false; !last;) {
      if (i == 0) {
        rounds.begin();
        destroyed = false;
        executor = calls[0].plan(true);
      }
      meeting.meet();
      last = rounds.last();
      const int round = rounds.done() - 1;
      if (i == round % kThreads) {
        CHECK_EQ(aclDestroyAclOpExecutor(executor), 0);
        // The next executor would take the place of the destroyed one, if that were not still
        // running.
        for (int k = 0; k < 20; ++k) CHECK_EQ(aclDestroyAclOpExecutor(calls[i].plan()), 0);
        destroyed = true;
      } else {
        for (bool gone = false; !gone;) {
          gone = destroyed;
          const aclnnStatus status = aclnnLeakyRelu(nullptr, 0, executor, calls[i].stream);
          ++runs[static_cast<size_t>(round)];
          if (status == 0) ran = true;
          if (gone || status != 0) CHECK_FAILS(status, 161002, "was already run, destroyed");
        }
      }
      meeting.meet();
    }
  });
  // Threads that take turns on one CPU may do so in step with the rounds: then the one that
  // destroys comes first in each, and nothing runs.
  if (ran) CHECK_EQ(calls[0].y[0], -1.0f);
  // With a fair lock a round has a handful of runs, with one whose waiters only try again 33,000.
  // Three quarters of the rounds may be longer: on a busy machine threads lose their CPU.
  const int done = rounds.done();
  std::vector<int64_t> sorted(runs.begin(), runs.begin() + done);
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted[static_cast<size_t>(done) / 4] < 1000);
  return done;
}

// Addresses that are set while others run: each run works on addresses that were set, and on none
// in between.
int moving() {
  Call call;
  std::vector<float> other(kElements, -6);
  aclOpExecutor* executor = call.plan(true);
  std::atomic<bool> over{false};
  Rounds rounds(10000, kSeconds);
  run_together(kThreads, [&](int i, Meeting&) {
    if (i == 0) {
      while (!rounds.last()) {
        rounds.begin();
        void* at = rounds.done() % 2 == 1 ? other.data() : call.x.data();
        CHECK_EQ(aclSetInputTensorAddr(executor, 0, call.self, at), 0);
      }
      over = true;
      return;
    }
    Call own;
    if (i == 1) {  // and one that asks for what it is already
      while (!over) CHECK_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
      return;
    }
    do {
      CHECK_EQ(aclnnLeakyRelu(nullptr, 0, executor, own.stream), 0);
      for (const float y : call.y) {
        if (y != -1.0f && y != -3.0f) return CHECK_EQ(y, -1.0f);
      }
    } while (!over);
  });
  CHECK_EQ(aclDestroyAclOpExecutor(executor), 0);
  return rounds.done();
}

}  // namespace

int main() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  const int won = one_wins(), destroyed = destroying(), moved = moving();
  if (check_result() != 0) {
    std::fprintf(stderr, "rounds: one_wins %d, destroying %d, moving %d\n", won, destroyed, moved);
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}
