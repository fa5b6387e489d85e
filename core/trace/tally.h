// SPDX-License-Identifier: Apache-2.0
// What the report of a run counts (`openaclnn npu --report`): each function with the dtypes and
// ranks of its tensors, how often it was called and refused, how long it took, and which products
// would refuse it. Each process writes one JSON file into the folder that OPENACLNN_REPORT names.
//
// Like the rest of the Recorder it is used under the Recorder's lock.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace openaclnn::trace {

struct TensorArgument {
  const char* name;
  const char* dtype;
  uint64_t rank;
};
using Signature = std::vector<TensorArgument>;

struct Verdict {
  std::string product;
  int32_t code;
  std::string sentence;
};

struct Tallied {
  enum class Kind : uint8_t { function, fallback } kind;
  std::string name;
  std::string tensors;  // JSON
  bool judged = false;  // on the products
  uint64_t calls = 0, refused = 0;
  int64_t planned = 0, worked = 0;  // nanoseconds: in phase 1, and in phase 2 or on the CPU
  std::string sentence;             // of the newest refusal
  std::vector<Verdict> verdicts;
};

class Tally {
 public:
  // Whether a report is wanted.
  bool wanted() const { return !folder_.empty(); }
  // Those of OPENACLNN_REPORT_PRODUCTS.
  const std::vector<std::string>& products() const { return products_; }

  Tally();
  Tallied* find(Tallied::Kind kind, const std::string& name, const Signature& signature);
  // Starts the file, so that a process that ends without writing it is noticed.
  void open();
  void restart();  // in a child of fork, which counts for itself
  struct Call {
    std::string name;
    uint64_t count;
    int64_t total;
  };
  // Written every second, and at the end: what a signal ends has all but its last second.
  bool is_due(int64_t now);
  void write(const std::vector<Call>& calls, const std::string& program, bool complete);

 private:
  std::string folder_, path_;
  int64_t written_ = 0;
  std::vector<std::string> products_;
  std::map<std::string, Tallied> entries_;
};

}  // namespace openaclnn::trace
