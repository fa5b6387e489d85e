// SPDX-License-Identifier: Apache-2.0
// The C functions that make executors repeatable, destroy them and set addresses.
#include "core/base/executor.h"
#include "core/base/list.h"
#include "core/base/object.h"
#include "core/support/observer.h"

namespace openaclnn {
namespace {

using Hold = HandlePool<aclOpExecutor>::Hold;

Status inner_null(const char* call, const char* argument, ObjectKind kind = ObjectKind::executor) {
  return fail(ACLNN_ERR_INNER_NULLPTR, {Reason::null_argument, kind}, call, "%s must not be NULL",
              argument);
}

// The aclSet…TensorAddr functions differ in which tensors `index` counts.
aclnnStatus set_address(const char* call, Executor::Group group, aclOpExecutor* executor,
                        size_t index, aclTensor* tensor, void* address) {
  if (executor == nullptr) return inner_null(call, "executor").code();
  if (tensor == nullptr) return inner_null(call, "tensor", ObjectKind::tensor).code();
  const Hold hold(executors(), executor);  // a run that has begun keeps its addresses
  Status status = hold ? Status() : not_alive(call, "executor", executor);
  HandlePool<aclTensor>::Hold own;
  if (status.ok()) status = find_alive(tensors(), call, "tensor", tensor, &own);
  if (!status.ok()) return status.code();
  status = executor->set_address(group, index, address);
  if (!status.ok()) return with_call(status, call).code();
  own->data = address;
  return ACLNN_SUCCESS;
}

// No operator with settable addresses takes a tensor list, so every irIndex is out of range.
aclnnStatus set_list_address(const char* call, aclOpExecutor* executor, size_t parameter,
                             const aclTensorList* tensors) {
  if (executor == nullptr) return inner_null(call, "executor").code();
  if (tensors == nullptr) return inner_null(call, "tensors", ObjectKind::tensor_list).code();
  const Hold hold(executors(), executor);
  Status status = hold ? Status() : not_alive(call, "executor", executor);
  if (status.ok()) status = check_alive(tensor_lists(), call, "tensors", tensors);
  if (!status.ok()) return status.code();
  status = executor->can_set_addresses();
  if (!status.ok()) return with_call(status, call).code();
  return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, call,
              "irIndex %zu is not a tensor list: this operator has none", parameter)
      .code();
}

}  // namespace
}  // namespace openaclnn

using openaclnn::Executor;
using openaclnn::executors;

extern "C" {

aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor) {
  constexpr const char* call = "aclSetAclOpExecutorRepeatable";
  if (executor == nullptr) return openaclnn::inner_null(call, "executor").code();
  const openaclnn::Hold hold(executors(), executor);
  if (!hold) return openaclnn::not_alive(call, "executor", executor).code();
  hold->repeatable = true;
  return ACLNN_SUCCESS;
}

// Waits for a run on the thread that called phase 2. An executor that phase 2 has consumed may also
// be destroyed, any number of times: cautious clients destroy at exit all executors that they ever
// made, when early handles have been reused for later ones.
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor) {
  constexpr const char* call = "aclDestroyAclOpExecutor";
  if (executor == nullptr) return openaclnn::inner_null(call, "executor").code();
  const auto notify = [](const aclOpExecutor& own) {
    openaclnn::notify_ending(call, openaclnn::kKindOf<aclOpExecutor>, &own);
  };
  if (executors().destroy(executor, notify) || executors().was_consumed(executor)) {
    return ACLNN_SUCCESS;
  }
  return openaclnn::not_alive(call, "executor", executor).code();
}

// Each call and its reserved synonym AclSet….
#define DEFINE_SET_ADDRESS(name, group)                                                         \
  aclnnStatus acl##name(aclOpExecutor* executor, const size_t index, aclTensor* tensor,         \
                        void* addr) {                                                           \
    return openaclnn::set_address("acl" #name, Executor::Group::group, executor, index, tensor, \
                                  addr);                                                        \
  }                                                                                             \
  aclnnStatus Acl##name(aclOpExecutor* executor, const size_t index, aclTensor* tensor,         \
                        void* addr) {                                                           \
    return acl##name(executor, index, tensor, addr);                                            \
  }

DEFINE_SET_ADDRESS(SetInputTensorAddr, inputs)
DEFINE_SET_ADDRESS(SetOutputTensorAddr, outputs)
DEFINE_SET_ADDRESS(SetTensorAddr, all)
#undef DEFINE_SET_ADDRESS

#define DEFINE_SET_LIST_ADDRESS(name)                                                        \
  aclnnStatus acl##name(aclOpExecutor* executor, size_t irIndex, const size_t,               \
                        aclTensorList* tensors, void*) {                                     \
    return openaclnn::set_list_address("acl" #name, executor, irIndex, tensors);             \
  }                                                                                          \
  aclnnStatus Acl##name(aclOpExecutor* executor, size_t irIndex, const size_t relativeIndex, \
                        aclTensorList* tensors, void* addr) {                                \
    return acl##name(executor, irIndex, relativeIndex, tensors, addr);                       \
  }

DEFINE_SET_LIST_ADDRESS(SetDynamicInputTensorAddr)
DEFINE_SET_LIST_ADDRESS(SetDynamicOutputTensorAddr)
DEFINE_SET_LIST_ADDRESS(SetDynamicTensorAddr)
#undef DEFINE_SET_LIST_ADDRESS

}  // extern "C"
