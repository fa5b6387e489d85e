// SPDX-License-Identifier: Apache-2.0
#include "core/trace/call.h"

#include "core/base/list.h"
#include "core/trace/core_calls.h"
#include "core/trace/show.h"

namespace openaclnn::trace {

void Call::tensor(const char* argument, const aclTensor* tensor) {
  if (tensor == nullptr || !Recorder::get().reports() || !is_known(tensor)) return;
  aclDataType dtype = ACL_DT_UNDEFINED;
  int64_t* dims = nullptr;
  uint64_t rank = 0;
  (void)openaclnn_aclGetDataType(tensor, &dtype);
  (void)openaclnn_aclGetViewShape(tensor, &dims, &rank);
  delete[] dims;
  signature_.push_back({argument, dtype_name(dtype), rank});
}

void Call::tensors(const char* argument, const aclTensorList* list) {
  uint64_t count = 0;
  if (list == nullptr || !Recorder::get().reports() ||
      openaclnn_aclGetTensorListSize(list, &count) != 0)
    return;
  for (uint64_t i = 0; i < count; ++i) {
    const size_t before = signature_.size();
    tensor(argument, (*list)[i]);
    // Lists of many tensors alike are one argument.
    if (before == 0 || signature_.size() == before) continue;
    const TensorArgument &newest = signature_.back(), &last = signature_[before - 1];
    if (newest.name == last.name && newest.dtype == last.dtype && newest.rank == last.rank)
      signature_.pop_back();
  }
}

}  // namespace openaclnn::trace
