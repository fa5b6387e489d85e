// SPDX-License-Identifier: Apache-2.0
// Operators by type on torch_npu's queue, whose failures are the stream's (queue.h).
#include "acl/acl_op_compiler.h"
#include "core/npu/queue.h"

using openaclnn::npu::phase2_failed;

extern "C" {

decltype(aclopCompileAndExecute) openaclnn_aclopCompileAndExecute;
decltype(aclopCompileAndExecuteV2) openaclnn_aclopCompileAndExecuteV2;

aclError aclopCompileAndExecute(const char* opType, int numInputs,
                                const aclTensorDesc* const* inputDesc,
                                const aclDataBuffer* const* inputs, int numOutputs,
                                const aclTensorDesc* const* outputDesc,
                                aclDataBuffer* const* outputs, const aclopAttr* attr,
                                aclopEngineType engineType, aclopCompileType compileFlag,
                                const char* opPath, aclrtStream stream) {
  const aclError code =
      openaclnn_aclopCompileAndExecute(opType, numInputs, inputDesc, inputs, numOutputs, outputDesc,
                                       outputs, attr, engineType, compileFlag, opPath, stream);
  return code == ACL_SUCCESS ? code : phase2_failed(code, stream);
}

aclError aclopCompileAndExecuteV2(const char* opType, int numInputs, aclTensorDesc** inputDesc,
                                  aclDataBuffer** inputs, int numOutputs,
                                  aclTensorDesc** outputDesc, aclDataBuffer** outputs,
                                  aclopAttr* attr, aclopEngineType engineType,
                                  aclopCompileType compileFlag, const char* opPath,
                                  aclrtStream stream) {
  const aclError code = openaclnn_aclopCompileAndExecuteV2(opType, numInputs, inputDesc, inputs,
                                                           numOutputs, outputDesc, outputs, attr,
                                                           engineType, compileFlag, opPath, stream);
  return code == ACL_SUCCESS ? code : phase2_failed(code, stream);
}
}
