// SPDX-License-Identifier: Apache-2.0
// What the parts of the fuzzer share: numbers from a seed, the rows, the count of calls, the
// report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_ops_nn.h"
#include "core/base/parameter.h"

namespace fuzz {

// SplitMix64: a short state, so that every case starts from seed and number alone.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t below(uint64_t n) { return next() % n; }
  int64_t between(int64_t low, int64_t high) {
    const auto base = static_cast<uint64_t>(low);
    return static_cast<int64_t>(base + below(static_cast<uint64_t>(high) - base + 1));
  }
  bool chance(unsigned percent) { return below(100) < percent; }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53;
  }
  template <class List>
  auto& pick(List& list) {
    return list[below(std::size(list))];
  }

 private:
  uint64_t state_;
};

// ---- the rows ----

using openaclnn::Kind;
using openaclnn::Role;

struct Parameter {
  const char* name;
  Kind kind;
  Role role;
  bool required;
  bool companion;  // has the dtype of the first tensor or FLOAT, like all other companions
  int condition;   // position of the flag without which an output is left alone, or -1
  std::vector<const char*> sizes;  // dimensions by name, where they have names
  bool rest;                       // any more dimensions follow
};

struct Size {
  const char* name;
  const char* divisor;  // it is a multiple of this earlier size; nullptr: of none
};

union Value {
  void* handle;
  double real;
  int64_t integer;
  bool flag;
  char* text;
};

struct Family;

struct Row {
  const char* name;
  const char* kernel;
  const Family* family;
  std::vector<Parameter> parameters;
  std::vector<aclDataType> dtypes;
  std::vector<Size> sizes;  // with names; otherwise shapes are equal, or
  bool broadcast;           // those of the inputs broadcast
  bool equal_inputs;        // one dtype
  bool equal_output;        // the dtype of the inputs
  bool has_rules;           // may refuse attributes
  aclnnStatus (*phase1)(const Value*, uint64_t* size, aclOpExecutor** executor);
  aclnnStatus (*phase2)(void* workspace, uint64_t size, aclOpExecutor* executor, aclrtStream);
};

extern const std::vector<Row> rows;

// ---- the run ----

struct Run {
  const char* mode = "";
  uint64_t seed = 0;
  uint64_t number = 0;  // of the case
  uint64_t calls = 0;
  uint64_t accepted = 0, refused = 0;   // phase 1
  uint64_t executed = 0, verified = 0;  // phase 2
  const char* last = "";  // the call that is running: what to look at when the process dies
};
extern constinit thread_local Run run;

// Counts a call of the interface.
#define CALL(function, ...) (++fuzz::run.calls, fuzz::run.last = #function, function(__VA_ARGS__))

// Prints what went wrong and the command that shows it again, and ends the process.
[[noreturn, gnu::format(printf, 1, 2)]] void fault(const char* format, ...);

// Handles that no function ever returned.
void* garbage(Random& random);

void fuzz_phases(Random& random);    // one operator, both phases
void fuzz_sequence(Random& random);  // some hundred runtime calls in any order
void start_phases();
void stop_phases();

}  // namespace fuzz
