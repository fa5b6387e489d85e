// SPDX-License-Identifier: Apache-2.0
// Operators by type, the interface before aclnn: attributes and execution. What needs a compiled
// kernel is refused.
#ifndef OPENACLNN_ACL_ACL_OP_H
#define OPENACLNN_ACL_ACL_OP_H

#include <stddef.h>
#include <stdint.h>

#include "acl/acl_base.h"
#include "acl/acl_dump.h"
#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aclopHandle aclopHandle;
typedef struct aclopAttr aclopAttr;
typedef struct aclopKernelDesc aclopKernelDesc;
typedef void (*aclDataDeallocator)(void* data, size_t length);
typedef int (*aclopCompileFunc)(int numInputs, const aclTensorDesc* const* inputDesc,
                                int numOutputs, const aclTensorDesc* const* outputDesc,
                                const aclopAttr* opAttr, aclopKernelDesc* aclopKernelDesc);

static const int ACL_COMPILE_FLAG_BIN_SELECTOR = 1;

typedef enum { ACL_ENGINE_SYS = 0, ACL_ENGINE_AICORE = 1, ACL_ENGINE_VECTOR = 2 } aclopEngineType;

ACL_FUNC_VISIBILITY aclopAttr* aclopCreateAttr(void);
ACL_FUNC_VISIBILITY void aclopDestroyAttr(const aclopAttr* attr);
ACL_FUNC_VISIBILITY aclError aclopSetAttrBool(aclopAttr* attr, const char* attrName,
                                              uint8_t attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName,
                                                  aclDataType attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName,
                                               float attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName,
                                             int64_t attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName,
                                                  int numValues, const uint8_t* values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName,
                                                   int numValues, const float* values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName,
                                                 int numValues, const int64_t* values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName,
                                                     int numLists, const int* numValues,
                                                     const int64_t* const* values);
ACL_FUNC_VISIBILITY aclError aclopSetAttrString(aclopAttr* attr, const char* attrName,
                                                const char* attrValue);
ACL_FUNC_VISIBILITY aclError aclopSetAttrListString(aclopAttr* attr, const char* attrName,
                                                    int numValues, const char** values);

// Runs an operator that openaclnn knows by its type; all others are refused.
ACL_FUNC_VISIBILITY aclError aclopExecuteV2(const char* opType, int numInputs,
                                            aclTensorDesc** inputDesc, aclDataBuffer** inputs,
                                            int numOutputs, aclTensorDesc** outputDesc,
                                            aclDataBuffer** outputs, aclopAttr* attr,
                                            aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclopCast(const aclTensorDesc* srcDesc, const aclDataBuffer* srcBuffer,
                                       const aclTensorDesc* dstDesc, aclDataBuffer* dstBuffer,
                                       uint8_t truncate, aclrtStream stream);
// A directory of compiled operators, of which none is loaded.
ACL_FUNC_VISIBILITY aclError aclopSetModelDir(const char* modelDir);

// ---- Kernels that a program compiled: refused ----

ACL_FUNC_VISIBILITY aclError aclopCreateKernel(const char* opType, const char* kernelId,
                                               const char* kernelName, void* binData, int binSize,
                                               aclopEngineType enginetype,
                                               aclDataDeallocator deallocator);
ACL_FUNC_VISIBILITY aclError aclopRegisterCompileFunc(const char* opType, aclopCompileFunc func);
ACL_FUNC_VISIBILITY aclError aclopSetKernelArgs(aclopKernelDesc* kernelDesc, const char* kernelId,
                                                uint32_t blockDim, const void* args,
                                                uint32_t argSize);
ACL_FUNC_VISIBILITY aclError aclopUpdateParams(const char* opType, int numInputs,
                                               const aclTensorDesc* const* inputDesc,
                                               int numOutputs,
                                               const aclTensorDesc* const* outputDesc,
                                               const aclopAttr* attr);

#ifdef __cplusplus
}
#endif

#endif
