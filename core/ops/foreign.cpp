// SPDX-License-Identifier: Apache-2.0
#include "core/ops/foreign.h"

#include <atomic>
#include <utility>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "core/base/plan_observer.h"
#include "core/ops/launch.h"
#include "core/support/product.h"
#include "core/support/api_guard.h"
#include "core/runtime/stream.h"
#include "core/runtime/stream_library.h"

namespace openaclnn {
namespace {

std::atomic<bool> deferred = false;

// Where phase 2 on this thread wants the status of its work; nullptr on threads of streams.
thread_local int32_t* outcome = nullptr;

struct ForeignCall {
  const ForeignWork* work;
};

void compute(const void* call, void*, int64_t, int64_t) {
  const int32_t code = static_cast<const ForeignCall*>(call)->work->run();
  if (code == 0) return;
  if (outcome != nullptr) {
    *outcome = code;
  } else {
    fail_context(take_failure(code));
  }
}

}  // namespace

bool refusals_deferred() {
  return deferred.load(std::memory_order_relaxed) && !openaclnn_is_on_product();
}

void ForeignWork::add(const char* name, const aclTensor* tensor, bool written) {
  if (plan_observer == nullptr) return;
  tensors_.push_back(tensor);
  Executor::describe(operands.emplace_back(), name, tensor, written ? Role::output : Role::input);
}

void ForeignWork::add_element(const char* list, size_t i, const aclTensor* tensor, bool written) {
  if (plan_observer == nullptr) return;
  names_.push_back(std::string(list) + "[" + std::to_string(i) + "]");
  add(names_.back().c_str(), tensor, written);
}

Status plan_foreign(const char* op, const void* maker, std::shared_ptr<ForeignWork> work,
                    aclOpExecutor** executor) {
  aclOpExecutor* made = executors().create(maker);
  if (made == nullptr)
    return fail(ACLNN_ERR_INNER_CREATE_EXECUTOR, Reason::no_resource, op,
                "too many executors are alive; run each once, or destroy the repeatable ones");
  made->emplace_call<ForeignCall>().work = work.get();
  made->add_step(compute, 1, 1);
  made->hold(work);
  if (plan_observer != nullptr) [[unlikely]] {
    std::vector<NamedTensor> tensors;
    for (size_t i = 0; i < work->tensors_.size(); ++i)
      tensors.push_back({work->operands[i].name, work->tensors_[i]});
    plan_observer->planned(op, *made, tensors.data(), static_cast<int>(tensors.size()));
  }
  *executor = made;
  return {};
}

int32_t run_foreign(const char* op, const void* maker, void* workspace, uint64_t workspace_size,
                    void* executor, void* stream) {
  int32_t code = 0;
  int32_t*& place = outcome;
  const Status status = guarded(op, ACLNN_ERR_INNER, [&] {
    // The stream may be waiting for callbacks that this thread must run: then the work is queued.
    const Busy busy = reports_here() ? Busy::queue : Busy::wait;
    place = &code;
    return launch(op, maker, workspace, workspace_size, static_cast<aclOpExecutor*>(executor),
                  stream, busy);
  });
  place = nullptr;
  return status.ok() ? code : status.code();
}

}  // namespace openaclnn

void openaclnn_defer_refusals() { openaclnn::deferred.store(true, std::memory_order_relaxed); }
