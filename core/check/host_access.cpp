// SPDX-License-Identifier: Apache-2.0
// Reports a host access to device memory (SIGSEGV); the process then ends, as it would crash on
// hardware.
#include "core/check/host_access.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>

#include "core/check/allocations.h"
#include "core/check/report.h"
#include "core/support/no_destructor.h"

namespace openaclnn::check {
namespace {

struct sigaction before;

enum class Way { reads, writes, unknown };

Way way_of(const void* context) {
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return (machine.gregs[REG_ERR] & 2) != 0 ? Way::writes : Way::reads;  // bit 1: a write
#else
  (void)machine;  // the kernel stores it in different places in different versions
  return Way::unknown;
#endif
}

void describe(Report& report, const void* address, Way way) {
  constexpr const char* kDid[] = {"read", "wrote", "touched"};
  report.what.add("the host ").add(kDid[static_cast<int>(way)]).add(" device memory at ");
  report.what.pointer(address).add(", ");
  const Block* own = block_at(address);
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (own != nullptr && own->is_reservation()) {
    report.what.add("among addresses that are reserved, where nothing is mapped");
  } else if (own == nullptr || at - own->begin > own->pages) {
    report.what.add("in no allocation");
    if (own != nullptr) {
      report.what.add("; ").number(at - own->end()).add(" bytes before it ends one of ");
      report.what.number(own->size).add(" bytes");
    }
  } else if (at < own->end()) {
    report.what.number(at - own->begin).add(" bytes into an allocation of ");
    report.what.number(own->size).add(" bytes");
  } else {
    report.what.number(at - own->end()).add(" bytes behind an allocation of ");
    report.what.number(own->size).add(" bytes");
  }
  if (own != nullptr && !own->live) report.what.add(", which was freed");
  report.what.add(".");
  if (own == nullptr) return;
  report.at("memory made by", own->call, own->made);
  if (!own->live) report.at("freed by", own->freed_by, own->freed);
}

void pass_on(int number, siginfo_t* info, void* context) {
  if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(number);
  } else {
    const bool sent = info->si_code <= 0;
    if (sent && before.sa_handler == SIG_IGN) return;
    sigaction(number, &before, nullptr);  // faults again with the previous handler
    if (sent) raise(number);              // a sent signal does not repeat
  }
}

Report make_report() {
  Report report("host_access");
  return report;
}

void on_fault(int number, siginfo_t* info, void* context) {
  if (info->si_code <= 0 || !is_device_address(info->si_addr)) {
    pass_on(number, info, context);
    return;
  }
  static std::atomic<bool> reported = false;
  if (reported.exchange(true)) {
    while (true) pause();  // another thread is about to end the process
  }
  static constinit NoDestructor<Report> place;  // too large for the stack of a handler
  Report& report = place.get(make_report);
  report.at("here", nullptr, stack_of_fault(context));
  describe(report, info->si_addr, way_of(context));
  report.advice =
      "copy between host and device with aclrtMemcpy; only operators work on device memory.";
  emit(report);
  print_total();
  _exit(exit_code() != 0 ? exit_code() : 128 + SIGSEGV);
}

}  // namespace

void watch_host_access() {
  constexpr size_t kStack = 256 << 10;  // the thread's stack may have overflowed
  void* stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t given = {}, own = {};
  if (stack != MAP_FAILED && sigaltstack(nullptr, &given) == 0 && (given.ss_flags & SS_DISABLE)) {
    own.ss_sp = stack;
    own.ss_size = kStack;
    sigaltstack(&own, nullptr);
  }
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &before);
}

}  // namespace openaclnn::check
