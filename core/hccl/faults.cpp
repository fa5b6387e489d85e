// SPDX-License-Identifier: Apache-2.0
// OPENACLNN_HCCL_FAULT=RANK:CALL:KIND: for tests of recovery, one rank fails at one of its calls,
// which count from 1.
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "core/hccl/task.h"
#include "core/support/environment.h"
#include "core/support/no_destructor.h"

namespace openaclnn::hccl {
namespace {

constexpr const char* kVariable = "OPENACLNN_HCCL_FAULT";

struct Chosen {
  uint32_t rank = 0;
  uint64_t call = 0;  // 0: none
  Fault fault = Fault::none;
};

template <class T>
const char* number(const char* text, T* value) {
  const auto [stop, error] = std::from_chars(text, text + std::strlen(text), *value);
  return error == std::errc() && *stop == ':' ? stop + 1 : nullptr;
}

Chosen read() {
  const char* const text = std::getenv(kVariable);
  if (text == nullptr || *text == '\0') return {};
  Chosen found;
  const char* rest = number(text, &found.rank);
  if (rest != nullptr) rest = number(rest, &found.call);
  const std::string kind = rest == nullptr ? "" : rest;
  found.fault = kind == "error" ? Fault::error : kind == "silent" ? Fault::silent : Fault::none;
  if (found.call > 0 && found.fault != Fault::none) return found;
  warn_environment(kVariable,
                   "RANK:CALL:error or RANK:CALL:silent with a call number of at least 1", text,
                   "no fault");
  return {};
}

std::atomic<uint64_t> calls = 0;

}  // namespace

Fault fault_of(uint32_t rank) {
  static constinit NoDestructor<Chosen> place;
  const Chosen& chosen = place.get(read);
  if (chosen.call == 0 || chosen.rank != rank) return Fault::none;
  return calls.fetch_add(1, std::memory_order_relaxed) + 1 == chosen.call ? chosen.fault
                                                                          : Fault::none;
}

// A silent rank waits as long as the others wait for it.
void commit(Fault fault) {
  if (fault == Fault::none) return;
  if (fault == Fault::error)
    throw Failure(kRemote, std::string("failed, as ") + kVariable + " says");
  std::this_thread::sleep_for(std::chrono::seconds(timeouts().execution));
  throw Failure(kTimeout, std::string("took no part, as ") + kVariable + " says");
}

}  // namespace openaclnn::hccl
