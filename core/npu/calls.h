// SPDX-License-Identifier: Apache-2.0
// The calls that only torch_npu makes and that have an effect here. Those that are refused are
// generated from src/openaclnn/torch_npu/names.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "acl/acl_rt.h"

struct aclTensorDesc;
struct aclDataBuffer;
struct aclopAttr;

struct aclrtUuid {
  char bytes[16];
};

struct aclCANNPackageVersion {
  char version[ACL_PKG_VERSION_MAX_SIZE];
  char majorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char minorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char releaseVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char patchVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
};

#define OPENACLNN_NPU extern "C" __attribute__((visibility("default")))

// ---- the older operators: descriptions, buffers, attributes, execution by type ----

OPENACLNN_NPU aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims,
                                                 const int64_t* dims, aclFormat format);
OPENACLNN_NPU void aclDestroyTensorDesc(const aclTensorDesc* desc);
OPENACLNN_NPU aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index,
                                             int64_t* dimSize);
OPENACLNN_NPU aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc);
OPENACLNN_NPU aclDataType aclGetTensorDescType(const aclTensorDesc* desc);
OPENACLNN_NPU size_t aclGetTensorDescNumDims(const aclTensorDesc* desc);
OPENACLNN_NPU void aclSetTensorDescName(aclTensorDesc* desc, const char* name);
OPENACLNN_NPU aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format);
OPENACLNN_NPU aclError aclSetTensorShape(aclTensorDesc* desc, int numDims, const int64_t* dims);
OPENACLNN_NPU aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType);
OPENACLNN_NPU aclDataBuffer* aclCreateDataBuffer(void* data, size_t size);
OPENACLNN_NPU aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer);
OPENACLNN_NPU aclopAttr* aclopCreateAttr(void);
OPENACLNN_NPU void aclopDestroyAttr(const aclopAttr* attr);
OPENACLNN_NPU aclError aclopSetAttrBool(aclopAttr* attr, const char* attrName, uint8_t attrValue);
OPENACLNN_NPU aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName, int64_t attrValue);
OPENACLNN_NPU aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName, float attrValue);
OPENACLNN_NPU aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName,
                                            aclDataType attrValue);
OPENACLNN_NPU aclError aclopSetAttrString(aclopAttr* attr, const char* attrName,
                                          const char* attrValue);
OPENACLNN_NPU aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName, int numValues,
                                            const uint8_t* values);
OPENACLNN_NPU aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName, int numValues,
                                           const int64_t* values);
OPENACLNN_NPU aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName, int numValues,
                                             const float* values);
OPENACLNN_NPU aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName, int numLists,
                                               const int* numValues, const int64_t* const values[]);
OPENACLNN_NPU aclError aclopCompileAndExecute(const char* opType, int numInputs,
                                              const aclTensorDesc* const inputDesc[],
                                              const aclDataBuffer* const inputs[], int numOutputs,
                                              const aclTensorDesc* const outputDesc[],
                                              aclDataBuffer* const outputs[], const aclopAttr* attr,
                                              int engineType, int compileFlag, const char* opPath,
                                              aclrtStream stream);
OPENACLNN_NPU aclError aclopCompileAndExecuteV2(const char* opType, int numInputs,
                                                aclTensorDesc* inputDesc[], aclDataBuffer* inputs[],
                                                int numOutputs, aclTensorDesc* outputDesc[],
                                                aclDataBuffer* outputs[], aclopAttr* attr,
                                                int engineType, int compileFlag, const char* opPath,
                                                aclrtStream stream);

// ---- options that are stored and returned ----

OPENACLNN_NPU aclError aclSetCompileopt(int opt, const char* value);
OPENACLNN_NPU size_t aclGetCompileoptSize(int opt);
OPENACLNN_NPU aclError aclGetCompileopt(int opt, char* value, size_t length);
OPENACLNN_NPU aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);
OPENACLNN_NPU aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode);
OPENACLNN_NPU aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag);
OPENACLNN_NPU aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag);
OPENACLNN_NPU aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout);

// ---- facts ----

OPENACLNN_NPU aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo,
                                              int64_t* value);
OPENACLNN_NPU aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value);
OPENACLNN_NPU aclError aclsysGetCANNVersion(int32_t name, aclCANNPackageVersion* version);
OPENACLNN_NPU aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid);
OPENACLNN_NPU aclError aclrtDeviceGetBareTgid(int32_t* pid);
OPENACLNN_NPU aclError aclmdlRICaptureGetInfo(aclrtStream stream, int* status, void** modelRI);

// ---- messages, and the parts of profiling that need no profiler ----

OPENACLNN_NPU void aclAppLog(aclLogLevel logLevel, const char* func, const char* file,
                             uint32_t line, const char* fmt, ...);
OPENACLNN_NPU uint64_t MsprofGetHashId(const char* hashInfo, size_t length);
OPENACLNN_NPU uint64_t MsprofSysCycleTime(void);
