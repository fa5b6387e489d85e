// SPDX-License-Identifier: Apache-2.0
// Runs both phases of every operator on threads with little stack, down to the minimum of a thread.
// The results must be those of a thread with a large stack.
//
//   stacks [--cases N] [--seed N]     N calls of each row for each size
//
// Below the stack lies more memory that faults than any frame could step over. The program paints
// the stack before a call and prints the most that a call took.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "cases.h"

namespace fuzz {

constinit thread_local Run run;

void fault(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fprintf(stderr, "\nseed %llu\n", static_cast<unsigned long long>(run.seed));
  std::_Exit(1);
}

namespace {

constexpr size_t kForbidden = size_t{4} << 20, kMost = size_t{1} << 20;
constexpr size_t kSizes[] = {16, 20, 24, 32, 48, 64, 1024};  // KiB; the last one only measures
constexpr unsigned char kPaint = 0xa5;

char doing[200];  // what to say when the process dies

void die(int) {
  static const char text[] = "the stack was not enough for ";
  (void)!write(2, text, sizeof text - 1);
  (void)!write(2, doing, std::strlen(doing));
  (void)!write(2, "\n", 1);
  _exit(1);
}

// Runs f on a thread with a stack of that size. Returns what f took beyond an empty function.
class Narrow {
 public:
  Narrow() {
    void* range = mmap(nullptr, kForbidden + kMost, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (range == MAP_FAILED || mprotect(low(range), kMost, PROT_READ | PROT_WRITE) != 0) {
      fault("no memory");
    }
    begin_ = low(range);
    struct sigaction action = {};
    action.sa_handler = die;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
  }

  // The lowest address that f touched, counted from the frame of the thread.
  size_t depth(size_t size, const std::function<void()>& f) {
    f_ = &f;
    std::memset(begin_, kPaint, kMost);
    // the last `size` bytes after the forbidden ones are what the thread gets
    if (size < kMost) mprotect(begin_ + size, kMost - size, PROT_NONE);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_t thread;
    const int refused = pthread_attr_setstack(&attributes, begin_, size) != 0
                            ? 1
                            : pthread_create(&thread, &attributes, start, this);
    pthread_attr_destroy(&attributes);
    if (refused == 0) pthread_join(thread, nullptr);
    if (size < kMost) mprotect(begin_ + size, kMost - size, PROT_READ | PROT_WRITE);
    if (refused != 0) return 0;
    const unsigned char* deepest =
        std::find_if_not(begin_, top_, [](unsigned char byte) { return byte == kPaint; });
    return static_cast<size_t>(top_ - deepest);
  }

 private:
  static unsigned char* low(void* range) { return static_cast<unsigned char*>(range) + kForbidden; }
  static void* start(void* own) {
    auto* self = static_cast<Narrow*>(own);
    stack_t beside = {};
    beside.ss_sp = self->handler_;
    beside.ss_size = sizeof self->handler_;
    sigaltstack(&beside, nullptr);
    self->top_ = static_cast<unsigned char*>(__builtin_frame_address(0));
    if (aclrtSetDevice(0) == ACL_SUCCESS) (*self->f_)();
    return nullptr;
  }

  unsigned char* begin_;
  unsigned char* top_ = nullptr;
  const std::function<void()>* f_ = nullptr;
  unsigned char handler_[1 << 16];
};

const Arenas& arenas() {
  static Arenas all;
  return all;
}

struct Depths {
  size_t phase1 = 0, dense = 0, strided = 0;  // phase 2 of tensors without gaps, and of others
};

// One call, for each size of the stack. False when the row refuses the attributes.
bool try_sizes(Random& random, const Row& row, Narrow& narrow, void* workspace, Depths& most) {
  Case c = good_case(random, row, arenas());
  const bool dense = random.chance(50);
  if (dense) c.ordinary = false;  // elements are what lies there
  for (size_t i = 0; dense && i < row.parameters.size(); ++i) {
    if (row.parameters[i].kind == Kind::tensor) {
      c.tensors[i] = contiguous(c.tensors[i], arenas()[i]);
    }
  }
  create_tensors(c);
  pass_tensors(c);
  uint64_t needed = 0;
  aclOpExecutor* executor = nullptr;
  if (row.phase1(c.values.data(), &needed, &executor) != ACLNN_SUCCESS) {
    aclGetRecentErrMsg();
    destroy_made(c);
    return false;
  }
  aclDestroyAclOpExecutor(executor);
  const Memory before = memory_of(c);
  Memory after = before;
  expect(c, after, workspace);
  for (const size_t kib : kSizes) {
    std::snprintf(doing, sizeof doing, "%s on a thread of %zu KiB, seed %llu", row.name, kib,
                  static_cast<unsigned long long>(run.seed));
    restore(before);
    aclnnStatus first = -1, second = -1;
    aclError third = -1;
    const size_t planned =
        narrow.depth(kib << 10, [&] { first = row.phase1(c.values.data(), &needed, &executor); });
    const size_t ran = narrow.depth(kib << 10, [&] {
      second = row.phase2(workspace, needed, executor, nullptr);
      third = aclrtSynchronizeStream(nullptr);
    });
    if (first != 0 || second != 0 || third != 0) {
      fault("%s: %d, %d, %d: %s", doing, first, second, third, aclGetRecentErrMsg());
    }
    compare(c, after);
    most.phase1 = std::max(most.phase1, planned);
    (dense ? most.dense : most.strided) = std::max(dense ? most.dense : most.strided, ran);
  }
  destroy_made(c);
  return true;
}

void must(int status, const char* call) {
  if (status != 0) fault("%s returned %d: %s", call, status, aclGetRecentErrMsg());
}

}  // namespace
}  // namespace fuzz

int main(int count, char** words) {
  using namespace fuzz;
  uint64_t cases = 30;
  run.seed = std::random_device{}();
  for (int i = 1; i + 1 < count; i += 2) {
    const uint64_t number = std::strtoull(words[i + 1], nullptr, 10);
    (std::string(words[i]) == "--cases" ? cases : run.seed) = number;
  }
  std::printf("seed %llu\n", static_cast<unsigned long long>(run.seed));
  std::fflush(stdout);
  must(aclInit(nullptr), "aclInit");
  must(aclrtSetDevice(0), "aclrtSetDevice");
  void* workspace = nullptr;
  must(aclrtMalloc(&workspace, kWorkspace, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  Random random(run.seed);
  Narrow narrow;
  for (const Row& row : rows) {
    Depths most;
    uint64_t done = 0;
    for (uint64_t tries = 0; done < cases && tries < 10 * cases; ++tries) {
      done += try_sizes(random, row, narrow, workspace, most) ? 1 : 0;
    }
    std::printf(
        "%s: %llu calls took at most %zu bytes of stack in phase 1, %zu in phase 2, %zu with "
        "gaps\n",
        row.name, static_cast<unsigned long long>(done), most.phase1, most.dense, most.strided);
    std::fflush(stdout);
    if (done == 0) fault("%s: no call was good", row.name);
  }
  must(aclrtFree(workspace), "aclrtFree");
  must(aclrtResetDevice(0), "aclrtResetDevice");
  must(aclFinalize(), "aclFinalize");
  return 0;
}
