// SPDX-License-Identifier: Apache-2.0
// One traced call: the generated function of its name fills it, calls the core, and hands it over.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/runtime/observer.h"
#include "core/runtime/status.h"
#include "core/trace/recorder.h"

namespace openaclnn::trace {

class Call {
 public:
  explicit Call(const char* name) : name_(name) { (void)Recorder::get(); }

  void set(size_t position, const char* argument, std::string value) {
    if (arguments_.size() <= position) arguments_.resize(position + 1);
    arguments_[position] = {argument, std::move(value)};
  }
  // Before phase 2: the call submits work to the stream.
  void submits(const void* stream, const aclOpExecutor* executor) {
    submission_ =
        Recorder::get().submit(name_, openaclnn_identity_of_stream(stream), executor, arguments_);
  }

  void begin() { begin_ = steady_nanoseconds(); }
  void end() { end_ = steady_nanoseconds(); }

  // Phase 1 made the executor from these arguments. Leaves out workspaceSize and executor, which
  // every operator has at the end.
  void plans(const aclOpExecutor* executor) {
    Recorder::get().know_plan(executor, {arguments_.begin(), arguments_.end() - 2});
  }
  void returned(const std::string& result, bool good) {
    if (submission_ != 0 && !good) Recorder::get().withdraw(submission_);
    char sentence[1000] = ": ";
    if (!good) openaclnn_newest_sentence(sentence + 2, sizeof sentence - 2);
    Recorder::get().called(name_, arguments_, good ? result : result + sentence, begin_, end_,
                           good ? submission_ : 0);
  }

 private:
  const char* name_;
  Arguments arguments_;
  uint64_t submission_ = 0;
  int64_t begin_ = 0, end_ = 0;
};

}  // namespace openaclnn::trace
