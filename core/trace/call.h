// SPDX-License-Identifier: Apache-2.0
// One traced call: the generated function of its name fills it, calls the core, and hands it over.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "core/runtime/work_listener.h"
#include "core/support/product.h"
#include "core/support/status.h"
#include "core/runtime/stream_library.h"
#include "core/trace/recorder.h"

namespace openaclnn::trace {

class Call {
 public:
  explicit Call(const char* name) : name_(name) { (void)Recorder::get(); }

  void set(size_t position, const char* argument, std::string value) {
    if (arguments_.size() <= position) arguments_.resize(position + 1);
    arguments_[position] = {argument, std::move(value)};
  }
  // A tensor, for the report of a run too.
  void tensor(const char* argument, const aclTensor* tensor);
  void tensors(const char* argument, const aclTensorList* list);
  // Before phase 1: plan(&workspace_size, &executor) makes the call, drop(executor) forgets it.
  template <class Plan, class Drop>
  void judge(const char* function, Plan plan, Drop drop) {
    Recorder& recorder = Recorder::get();
    if (!recorder.reports()) return;
    auto once = [&]() -> int32_t {
      uint64_t workspace_size = 0;
      aclOpExecutor* executor = nullptr;
      const int32_t result = plan(&workspace_size, &executor);
      if (result == 0) drop(executor);
      return result;
    };
    tallied_ = recorder.tally(
        Tallied::Kind::function, function, signature_, [&](const std::string& product) {
          char sentence[1000] = "";
          const auto call = [](void* own) { return (*static_cast<decltype(once)*>(own))(); };
          const int32_t code =
              openaclnn_call_on_product(product.c_str(), call, &once, sentence, sizeof sentence);
          return Verdict{product, code, sentence};
        });
  }

  // Before phase 2: the call submits work to the stream.
  void submits(const void* stream, const aclOpExecutor* executor) {
    Recorder& recorder = Recorder::get();
    submitted_ = recorder.tallied_by(executor);
    if (openaclnn_records(const_cast<void*>(stream))) {
      openaclnn_record_as(recorder.record(name_, executor, arguments_),
                          [](uint64_t number) { Recorder::get().forget(number); });
      return;
    }
    submission_ =
        recorder.submit(name_, openaclnn_identity_of_stream(stream), executor, arguments_);
  }

  void begin() { begin_ = steady_nanoseconds(); }
  void end() {
    end_ = steady_nanoseconds();
    openaclnn_record_as(0, nullptr);
  }

  // Phase 1 made the executor from these arguments. Leaves out workspaceSize and executor, which
  // every operator has at the end.
  void plans(const aclOpExecutor* executor) {
    Recorder::get().know_plan(executor, {arguments_.begin(), arguments_.end() - 2}, tallied_);
  }
  void returned(const std::string& result, bool good) {
    char sentence[1000] = ": ";
    if (!good) openaclnn_newest_sentence(sentence + 2, sizeof sentence - 2);
    // A synchronous call that failed was withdrawn from the submissions when its work ended.
    if (submission_ != 0 && !good) Recorder::get().withdraw(submission_);
    if (submitted_ != nullptr && !good) Recorder::get().refuse(submitted_, sentence + 2);
    if (tallied_ != nullptr)
      Recorder::get().planned(tallied_, good ? "" : sentence + 2, begin_, end_);
    Recorder::get().called(name_, arguments_, good ? result : result + sentence, begin_, end_,
                           good ? submission_ : 0, !good);
  }

 private:
  const char* name_;
  Arguments arguments_;
  Signature signature_;
  Tallied* tallied_ = nullptr;    // of phase 1
  Tallied* submitted_ = nullptr;  // of phase 2
  uint64_t submission_ = 0;
  int64_t begin_ = 0, end_ = 0;
};

}  // namespace openaclnn::trace
