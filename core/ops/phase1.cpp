// SPDX-License-Identifier: Apache-2.0
// What phase 1 does for every operator, in the order of the contract: NULLs, product, dtypes, then
// the family's shapes and attributes, then views and overlap. The first failure wins and leaves one
// sentence.
#include "core/ops/argument_checks.h"
#include "core/ops/operator.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/object.h"
#include "core/base/plan_observer.h"
#include "core/base/view.h"
#include "core/ops/foreign.h"
#include "core/ops/launch.h"
#include "core/base/listed.h"
#include "core/support/api_guard.h"
#include "core/support/arithmetic.h"
#include "core/support/observer.h"
#include "core/support/product.h"

namespace openaclnn {

int Operator::find(const char* parameter) const {
  int i = 0;
  while (std::strcmp(parameters[i].name, parameter) != 0) ++i;
  return i;
}

namespace {

ObjectKind kind_of(const Parameter& parameter) {
  return parameter.kind == Kind::tensor   ? ObjectKind::tensor
         : parameter.kind == Kind::scalar ? ObjectKind::scalar
                                          : ObjectKind::none;
}

// Outputs that the caller has not made yet may be missing.
enum class Missing { none, outputs };

Status check_required(const Operator& op, const Argument* arguments, Missing allowed) {
  for (int i = 0; i < op.parameter_count; ++i) {
    const Parameter& parameter = op.parameters[i];
    if (allowed == Missing::outputs && parameter.role == Role::output) continue;
    const bool unwanted = parameter.condition >= 0 && !arguments[parameter.condition].flag;
    if (parameter.required && !unwanted && arguments[i].handle == nullptr) {
      return fail(ACLNN_ERR_PARAM_NULLPTR, {Reason::null_argument, kind_of(parameter)}, op.name,
                  "%s must not be NULL", parameter.name);
    }
  }
  return {};
}

// Everything before the family's own checks.
Status check_common(const Operator& op, const Argument* arguments, int product) {
  if (Status status = check_product(op, product); !status.ok()) return status;
  if (Status status = check_dtypes(op, arguments, product); !status.ok()) return status;
  for (int i = 0; i < op.parameter_count; ++i) {
    if (op.parameters[i].kind != Kind::tensor || !is_wanted(op, arguments, i)) continue;
    const int rank = arguments[i].tensor->shape.rank;
    if (rank > kMaxRank) {
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, op.name,
                  "%s must have at most %d dimensions, but got %d", op.parameters[i].name, kMaxRank,
                  rank);
    }
  }
  return {};
}

Status plan_present(const Operator& op, const Argument* arguments, Executor& executor,
                    int product = current_product()) {
  const DefaultArithmetic arithmetic;  // scalars become fp32
  if (Status status = check_common(op, arguments, product); !status.ok()) return status;
  return op.plan(op, arguments, executor);
}

}  // namespace

// As the binding for Python calls it.
Status plan(const Operator& op, const Argument* arguments, Executor& executor) {
  if (observer != nullptr) [[unlikely]]
    observer->used();
  if (Status status = check_required(op, arguments, Missing::none); !status.ok()) return status;
  return plan_present(op, arguments, executor);
}

Status infer(const Operator& op, const Argument* arguments, int output, aclDataType* dtype,
             Dims* shape) {
  return infer(op, arguments, output, dtype, shape, current_product());
}

Status infer(const Operator& op, const Argument* arguments, int output, aclDataType* dtype,
             Dims* shape, int product) {
  if (Status status = check_required(op, arguments, Missing::outputs); !status.ok()) return status;
  const DefaultArithmetic arithmetic;
  if (Status status = check_common(op, arguments, product); !status.ok()) return status;
  return op.infer(op, arguments, output, dtype, shape);
}

Status dry_plan(const Operator& op, const Argument* arguments, int product) {
  if (Status status = check_required(op, arguments, Missing::none); !status.ok()) return status;
  Executor unused(&op);
  return plan_present(op, arguments, unused, product);
}

namespace {

[[gnu::noinline, gnu::cold]] void observe_plan(const Operator& op, const Argument* arguments,
                                               aclOpExecutor& executor) {
  executor.reach();
  NamedTensor tensors[kMaxParameters];
  int count = 0;
  for (int i = 0; i < op.parameter_count; ++i) {
    if (op.parameters[i].kind != Kind::tensor || arguments[i].tensor == nullptr) continue;
    tensors[count++] = {op.parameters[i].name, arguments[i].tensor};
  }
  plan_observer->planned(op.name, executor, tensors, count);
}

Status plan_handles(const Operator& op, Argument* arguments, uint64_t* workspace_size,
                    aclOpExecutor** executor) {
  if (workspace_size == nullptr || executor == nullptr) {
    return fail(ACLNN_ERR_PARAM_NULLPTR, Reason::null_argument, op.name, "%s must not be NULL",
                workspace_size == nullptr ? "workspaceSize" : "executor");
  }
  if (Status status = check_required(op, arguments, Missing::none); !status.ok()) return status;
  UntypedPin pins[kMaxParameters];  // another thread may destroy an argument
  for (int i = 0; i < op.parameter_count; ++i) {
    const Parameter& parameter = op.parameters[i];
    const void* handle = arguments[i].handle;
    if (parameter.kind > Kind::scalar || handle == nullptr) continue;
    if (parameter.kind == Kind::tensor) {
      HandlePool<aclTensor>::Pin pin(tensors(), handle);
      arguments[i].tensor = pin.get();
      pins[i] = std::move(pin).untyped();
    } else {
      HandlePool<aclScalar>::Pin pin(scalars(), handle);
      arguments[i].scalar = pin.get();
      pins[i] = std::move(pin).untyped();
    }
    if (arguments[i].handle == nullptr) {
      return dead_handle(ACLNN_ERR_PARAM_INVALID, op.name, kind_of(parameter), parameter.name,
                         handle);
    }
  }
  const auto discard = [](aclOpExecutor* unused) { executors().destroy(unused); };
  std::unique_ptr<aclOpExecutor, decltype(discard)> made(executors().create(&op), discard);
  if (made == nullptr) {
    return fail(ACLNN_ERR_INNER_CREATE_EXECUTOR, Reason::no_resource, op.name,
                "too many executors are alive; run each once, or destroy the repeatable ones");
  }
  if (Status status = plan_present(op, arguments, *made); !status.ok()) return status;
  if (plan_observer != nullptr) [[unlikely]]
    observe_plan(op, arguments, *made);
  *workspace_size = made->workspace_size();
  *executor = made.release();
  return {};
}

// The work of a call that phase 1 refused; fails with the sentence of phase 1.
class RefusedWork : public ForeignWork {
 public:
  explicit RefusedWork(TakenFailure refusal) : refusal_(std::move(refusal)) {}

  int32_t run() const override { return fail(refusal_).code(); }

 private:
  TakenFailure refusal_;
};

[[gnu::noinline, gnu::cold]] Status defer(const Operator& op, Status refusal,
                                          uint64_t* workspace_size, aclOpExecutor** executor) {
  if (workspace_size == nullptr || executor == nullptr) return refusal;
  *workspace_size = 0;
  const int32_t code = refusal.code();
  return plan_foreign(op.name, &op, std::make_shared<RefusedWork>(take_failure(code)), executor);
}

}  // namespace

aclnnStatus plan_call(const Operator& op, Argument* arguments, uint64_t* workspace_size,
                      aclOpExecutor** executor) {
  return guarded(op.name, ACLNN_ERR_INNER,
                 [&] {
                   const Status status = plan_handles(op, arguments, workspace_size, executor);
                   return status.ok() || !refusals_deferred()
                              ? status
                              : defer(op, status, workspace_size, executor);
                 })
      .code();
}

aclnnStatus run_call(const Operator& op, void* workspace, uint64_t workspace_size,
                     aclOpExecutor* executor, void* stream) {
  return guarded(op.name, ACLNN_ERR_INNER,
                 [&] { return launch(op.name, &op, workspace, workspace_size, executor, stream); })
      .code();
}

}  // namespace openaclnn
