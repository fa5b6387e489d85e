// SPDX-License-Identifier: Apache-2.0
// Contexts, devices and streams end while other threads use them: each call does its work or
// returns an error, and none accesses freed objects. Runs under the address and thread sanitizers
// too.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kDuration = std::chrono::milliseconds(1500);  // of each race
constexpr int kUsers = 4;
constexpr size_t kBytes = 1 << 18;  // too long to run on the thread that submits

std::atomic<int> unexpected{0};
std::atomic<int64_t> done{0}, refused{0};
std::atomic<int64_t> ended{0};  // how often the race has ended what others use
std::atomic<bool> over{false};  // it does so no more

// A call that may meet what has ended: success, or one of the codes of a lost race.
void meet(const char* text, int code, std::initializer_list<int> allowed) {
  ++(code == 0 ? done : refused);
  if (code == 0 || std::find(allowed.begin(), allowed.end(), code) != allowed.end()) return;
  if (++unexpected <= 10) std::fprintf(stderr, "%s: %d: %s\n", text, code, aclGetRecentErrMsg());
}
// No current context; the context of the stream is gone; the stream is gone; a thread that had a
// callback unsubscribed.
#define MEET(call) meet(#call, call, {107002, 107003, 107017, 100034})

// What one thread works with.
class User {
 public:
  User() : memory_(kBytes), x_(kElements, -2), y_(kElements, 0) {
    CHECK_EQ(aclrtSetDevice(0), 0);
    CHECK_EQ(aclrtMalloc(&device_, kBytes, ACL_MEM_MALLOC_NORMAL_ONLY), 0);
    CHECK_EQ(aclrtCreateEvent(&event_), 0);
    const int64_t n = kElements;
    self_ = aclCreateTensor(&n, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &n, 1, x_.data());
    out_ = aclCreateTensor(&n, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &n, 1, y_.data());
    float value = 0.5f;
    slope_ = aclCreateScalar(&value, ACL_FLOAT);
  }
  ~User() {
    CHECK_EQ(aclDestroyScalar(slope_), 0);
    CHECK_EQ(aclDestroyTensor(out_), 0);
    CHECK_EQ(aclDestroyTensor(self_), 0);
    CHECK_EQ(aclrtDestroyEvent(event_), 0);
    CHECK_EQ(aclrtFree(device_), 0);
  }
  User(const User&) = delete;

  // Everything that takes a stream, with `stream`: NULL is the default one. Its work is over on
  // return, whether or not the stream was destroyed.
  void use(aclrtStream stream) {
    const int64_t before = refused;
    use_now(stream);
    if (refused == before) return;
    const int64_t seen = ended;  // the end that made a call fail is under way
    while (ended == seen && !over) std::this_thread::yield();
  }
  void use_now(aclrtStream stream) {
    MEET(aclrtMemsetAsync(device_, kBytes, 1, kBytes, stream));
    MEET(aclrtMemsetAsync(device_, kBytes, 2, 64, stream));
    MEET(aclrtMemcpyAsync(memory_.data(), kBytes, device_, kBytes, ACL_MEMCPY_DEVICE_TO_HOST,
                          stream));
    MEET(aclrtRecordEvent(event_, stream));
    MEET(aclrtStreamWaitEvent(stream, event_));
    aclrtStreamStatus status;
    MEET(aclrtStreamQuery(stream, &status));
    leaky_relu(stream);
    MEET(aclrtSynchronizeStream(stream));
    const auto self = static_cast<uint64_t>(pthread_self());
    meet("aclrtSubscribeReport", aclrtSubscribeReport(self, stream),
         {107002, 107003, 107017, 100033});
    meet("aclrtLaunchCallback",
         aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_NO_BLOCK, stream),
         {107002, 107003, 107017, 100034});
    meet("aclrtProcessReport", aclrtProcessReport(1), {100035, 100036});
    meet("aclrtUnSubscribeReport", aclrtUnSubscribeReport(self, stream),
         {107002, 107003, 107017, 100034, 100035});
    MEET(aclrtSynchronizeEvent(event_));
  }

  // What takes the context or device of the thread.
  void use_context() {
    int32_t device = -1;
    MEET(aclrtGetDevice(&device));
    MEET(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
    aclrtStream own;
    const int code = aclrtCreateStream(&own);
    meet("aclrtCreateStream", code, {107002});
    if (code == 0) {
      MEET(aclrtMemsetAsync(device_, kBytes, 3, kBytes, own));
      CHECK_EQ(aclrtDestroyStream(own), 0);
    }
    MEET(aclrtSynchronizeDevice());
  }

 private:
  static constexpr int64_t kElements = 4096;

  void leaky_relu(aclrtStream stream) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK_EQ(aclnnLeakyReluGetWorkspaceSize(self_, slope_, out_, &size, &executor), 0);
    const int code = aclnnLeakyRelu(nullptr, 0, executor, stream);
    meet("aclnnLeakyRelu", code, {361001});
    if (code != 0) CHECK_EQ(aclDestroyAclOpExecutor(executor), 0);
  }

  std::vector<char> memory_;
  std::vector<float> x_, y_;
  void* device_ = nullptr;
  aclrtEvent event_ = nullptr;
  aclTensor *self_ = nullptr, *out_ = nullptr;
  aclScalar* slope_ = nullptr;
};

// `use(User&, over)` on several threads, while this one calls `end()` again and again.
template <class Use, class End>
void race(const char* name, Use use, End end) {
  done = refused = ended = 0;
  over = false;
  std::atomic<int> ready{0};
  std::vector<std::thread> users;
  for (int i = 0; i < kUsers; ++i) {
    users.emplace_back([&] {
      User user;
      for (++ready; ready < kUsers;) std::this_thread::yield();
      while (!over) use(user);
      user.use(nullptr);
    });
  }
  while (ready < kUsers) std::this_thread::yield();
  const auto until = Clock::now() + kDuration;
  while (Clock::now() < until) {
    end();
    ++ended;
    std::this_thread::yield();
  }
  over = true;
  for (std::thread& user : users) user.join();
  CHECK(done > 0);
  if (check_failures != 0 || unexpected != 0) {
    std::fprintf(stderr, "%s: %lld calls done, %lld refused\n", name,
                 static_cast<long long>(done.load()), static_cast<long long>(refused.load()));
  }
}

// A context that all threads make current is destroyed, and another one takes its place.
void contexts() {
  std::atomic<aclrtContext> shared{nullptr};
  const auto replace = [&] {
    aclrtContext made = nullptr;
    CHECK_EQ(aclrtCreateContext(&made, 0), 0);
    const aclrtContext before = shared.exchange(made);
    if (before != nullptr) CHECK_EQ(aclrtDestroyContext(before), 0);
  };
  replace();
  race(
      "contexts",
      [&](User& user) {
        MEET(aclrtSetCurrentContext(shared));
        user.use(nullptr);
        user.use_context();
      },
      replace);
  CHECK_EQ(aclrtDestroyContext(shared.exchange(nullptr)), 0);
}

void devices() {
  race(
      "devices",
      [](User& user) {
        CHECK_EQ(aclrtSetDevice(0), 0);
        user.use(nullptr);
        user.use_context();
      },
      [] {
        const int code = aclrtResetDeviceForce(0);
        if (code != 0) CHECK_FAILS(code, 107000, "device 0");  // nobody has set it again
      });
  CHECK_EQ(aclrtSetDevice(0), 0);
}

// Streams that other threads use.
void streams(bool by_force) {
  CHECK_EQ(aclrtSetDevice(0), 0);
  std::atomic<aclrtStream> shared{nullptr};
  const auto replace = [&] {
    aclrtStream made = nullptr;
    CHECK_EQ(aclrtCreateStream(&made), 0);
    const aclrtStream before = shared.exchange(made);
    if (before == nullptr) return;
    MEET(by_force ? aclrtDestroyStreamForce(before) : aclrtDestroyStream(before));
  };
  replace();
  race("streams", [&](User& user) { user.use(shared); }, replace);
  CHECK_EQ(aclrtDestroyStream(shared.exchange(nullptr)), 0);
}

// Of the threads that destroy a stream one succeeds.
void one_destroys() {
  constexpr int kRounds = 2000;
  std::atomic<int> winners{0}, arrived{0};
  std::vector<aclrtStream> all(kRounds);
  for (aclrtStream& stream : all) CHECK_EQ(aclrtCreateStream(&stream), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&, i] {
      CHECK_EQ(aclrtSetDevice(0), 0);
      for (int k = 0; k < kRounds; ++k) {
        for (++arrived; arrived < 2 * (k + 1);) std::this_thread::yield();
        const aclrtStream stream = all[static_cast<size_t>(k)];
        const int code = i == 0 ? aclrtDestroyStream(stream) : aclrtDestroyStreamForce(stream);
        if (code == 0) ++winners;
        if (code != 0) CHECK_FAILS(code, 107017, "stream 0x");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(winners, kRounds);
}

// Several threads use and destroy one event at once: every call returns a status.
void destroyed_by_another_thread() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  for (int round = 0; round < 200; ++round) {
    aclrtEvent event;
    CHECK_EQ(aclrtCreateEvent(&event), 0);
    std::atomic<int> destroyed = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        CHECK_EQ(aclrtSetDevice(0), 0);
        for (aclError code : {aclrtRecordEvent(event, nullptr),
                              aclrtStreamWaitEvent(nullptr, event), aclrtSynchronizeEvent(event)}) {
          CHECK(code == 0 || code == 107017);
        }
        destroyed += aclrtDestroyEvent(event) == 0;
        CHECK_EQ(aclrtResetDevice(0), 0);
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK_EQ(destroyed.load(), 1);
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
}

}  // namespace

int main() {
  destroyed_by_another_thread();  // before the races that end the device's context
  CHECK_EQ(aclrtSetDevice(0), 0);
  contexts();
  devices();
  streams(false);
  streams(true);
  one_destroys();
  CHECK_EQ(unexpected, 0);
  CHECK_EQ(aclrtResetDeviceForce(0), 0);
  return check_result();
}
