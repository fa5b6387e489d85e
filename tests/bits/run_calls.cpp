// SPDX-License-Identifier: Apache-2.0
// Runs the calls of a file through the C symbols and prints their results. compare.py makes the
// file and describes its contents. The program knows no operator: the rows give the names, the
// prototypes the types.
//
//     run_calls CALLS RESULTS
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_ops_nn.h"

namespace {

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::exit(1);
}

class File {
 public:
  File(const char* path, const char* mode) : file_(std::fopen(path, mode)) {
    if (file_ == nullptr) fail(std::string(path) + " cannot be opened");
  }
  ~File() { std::fclose(file_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool at_end() {
    const int next = std::fgetc(file_);
    if (next != EOF) std::ungetc(next, file_);
    return next == EOF;
  }
  void read(void* to, size_t bytes) {
    if (std::fread(to, 1, bytes, file_) != bytes) fail("the calls end in the middle of one");
  }
  template <class T>
  T number() {
    T value;
    read(&value, sizeof value);
    return value;
  }
  template <class List>
  List list() {
    List values(static_cast<size_t>(number<int64_t>()), typename List::value_type());
    read(values.data(), values.size() * sizeof(typename List::value_type));
    return values;
  }
  void write(const std::vector<char>& bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail("disk full?");
  }

 private:
  std::FILE* file_;
};

struct Handles {
  ~Handles() {
    aclDestroyTensor(tensor);
    aclDestroyScalar(scalar);
  }
  aclTensor* tensor = nullptr;
  aclScalar* scalar = nullptr;
};

// One argument of phase 1; it becomes what its parameter asks for.
class Argument {
 public:
  explicit Argument(File& file) {
    const auto kind = file.number<int64_t>();
    if (kind == kTensor) {
      written_ = file.number<int64_t>() != 0;
      const auto dtype = static_cast<aclDataType>(file.number<int64_t>());
      const auto shape = file.list<std::vector<int64_t>>();
      const auto strides = file.list<std::vector<int64_t>>();
      const auto offset = file.number<int64_t>(), elements = file.number<int64_t>();
      storage_ = file.list<std::vector<char>>();
      handles_->tensor = aclCreateTensor(shape.data(), shape.size(), dtype, strides.data(), offset,
                                         ACL_FORMAT_ND, &elements, 1, storage_.data());
      if (handles_->tensor == nullptr) fail(aclGetRecentErrMsg());
    } else if (kind == kNumber) {
      number_ = file.number<double>();
      handles_->scalar = aclCreateScalar(&number_, ACL_DOUBLE);
    } else if (kind == kText) {
      text_ = file.list<std::string>();
    }
  }

  operator const aclTensor*() const { return handles_->tensor; }
  operator aclTensor*() const { return handles_->tensor; }
  operator const aclScalar*() const { return handles_->scalar; }
  operator double() const { return number_; }
  operator int64_t() const { return static_cast<int64_t>(number_); }
  operator bool() const { return number_ != 0; }
  operator char*() const { return text_.empty() ? nullptr : text_.data(); }

  void write(File& file) const {
    if (written_) file.write(storage_);
  }

 private:
  enum { kTensor, kNumber, kText };  // any other: NULL
  bool written_ = false;
  std::vector<char> storage_;
  double number_ = 0;
  mutable std::string text_;
  std::unique_ptr<Handles> handles_ = std::make_unique<Handles>();
};

using Arguments = std::deque<Argument>;
using Phase1 = aclnnStatus (*)(Arguments&, uint64_t*, aclOpExecutor**);
using Phase2 = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);

template <auto function>
struct Phase1Of;

template <class... P, aclnnStatus (*function)(P...)>
struct Phase1Of<function> {
  static aclnnStatus call(Arguments& arguments, uint64_t* size, aclOpExecutor** executor) {
    if (arguments.size() != sizeof...(P) - 2) fail("a call has another number of arguments");
    return call(arguments, size, executor, std::make_index_sequence<sizeof...(P) - 2>());
  }
  template <size_t... i>
  static aclnnStatus call(Arguments& arguments, uint64_t* size, aclOpExecutor** executor,
                          std::index_sequence<i...>) {
    return function(arguments[i]..., size, executor);
  }
};

const std::map<std::string, std::pair<Phase1, Phase2>> operators = {
#define OPERATOR(name) {#name, {Phase1Of<name##GetWorkspaceSize>::call, name}},
#include "generated/names.inc"
#undef OPERATOR
};

void run(File& calls, File& results) {
  const auto name = calls.list<std::string>();
  Arguments arguments;
  for (auto n = calls.number<int64_t>(); n > 0; --n) arguments.emplace_back(calls);
  const auto found = operators.find(name);
  if (found == operators.end()) fail("there is no operator " + name);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  const auto [phase1, phase2] = found->second;
  if (phase1(arguments, &size, &executor) != 0) fail(aclGetRecentErrMsg());
  std::vector<char> workspace(size);
  void* const where = size == 0 ? nullptr : workspace.data();
  if (phase2(where, size, executor, nullptr) != 0) fail(aclGetRecentErrMsg());
  if (aclrtSynchronizeStream(nullptr) != 0) fail(aclGetRecentErrMsg());
  for (const Argument& argument : arguments) argument.write(results);
}

}  // namespace

int main(int count, char** text) {
  if (count != 3) fail("run_calls CALLS RESULTS");
  if (aclrtSetDevice(0) != 0) fail(aclGetRecentErrMsg());
  File calls(text[1], "rb"), results(text[2], "wb");
  while (!calls.at_end()) run(calls, results);
}
