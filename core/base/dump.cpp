// SPDX-License-Identifier: Apache-2.0
// Dumping tensors to files is not supported: the call does nothing unless the configuration asks
// for dumps, and then fails.
#include "aclnn/acl_meta.h"
#include "core/base/tensor.h"
#include "core/runtime/init.h"
#include "core/support/status.h"

using namespace openaclnn;

namespace {

constexpr const char* kCall = "aclDumpOpTensors";

Status check(const char* type, const char* name, aclTensor** given, size_t inputs, size_t outputs) {
  const auto null = [](const char* argument) {
    return fail(ACLNN_ERR_PARAM_NULLPTR, Reason::null_argument, kCall, "%s must not be NULL",
                argument);
  };
  if (type == nullptr) return null("opType");
  if (name == nullptr) return null("opName");
  if (given == nullptr) return null("tensors");
  size_t count = 0;
  if (__builtin_add_overflow(inputs, outputs, &count)) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, kCall,
                "inputTensorNum %zu and outputTensorNum %zu are too large", inputs, outputs);
  }
  for (size_t i = 0; i < count; ++i) {
    if (given[i] == nullptr) continue;  // a missing optional tensor
    if (tensors().find(given[i]) == nullptr) {
      return fail(ACLNN_ERR_PARAM_INVALID, {Reason::dead_handle, ObjectKind::tensor}, kCall,
                  "tensors[%zu] %p was destroyed or never created", i,
                  static_cast<void*>(given[i]));
    }
  }
  if (!wants_dump()) return {};
  return fail(ACL_ERROR_API_NOT_SUPPORT, Reason::not_supported, kCall,
              "dumping tensors to the dump_path of aclInit is not supported; copy those of %s %s "
              "with aclrtMemcpy",
              type, name);
}

}  // namespace

aclnnStatus aclDumpOpTensors(const char* opType, const char* opName, aclTensor** tensors,
                             size_t inputTensorNum, size_t outputTensorNum, aclrtStream) {
  return check(opType, opName, tensors, inputTensorNum, outputTensorNum).code();
}
