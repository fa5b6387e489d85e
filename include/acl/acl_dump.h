// SPDX-License-Identifier: Apache-2.0
// Dumps of tensors and of failures.
#ifndef OPENACLNN_ACL_ACL_DUMP_H
#define OPENACLNN_ACL_ACL_DUMP_H

#include <stddef.h>
#include <stdint.h>

#include "acl/acl_base.h"

#define ACL_DUMP_MAX_FILE_PATH_LENGTH 4096
#define ACL_OP_DUMP_OP_AICORE_ARGS 0x00000001U
#define ACL_DUMP_MAX_SHAPE_NUM 25

#ifdef __cplusplus
extern "C" {
#endif

typedef struct acldumpChunk {
  char fileName[ACL_DUMP_MAX_FILE_PATH_LENGTH];
  uint32_t bufLen;
  uint32_t isLastChunk;
  int64_t offset;
  int32_t flag;
  uint8_t dataBuf[1];  // bufLen bytes
} acldumpChunk;
typedef struct acldumpTensorInfo acldumpTensorInfo;
typedef int32_t (*acldumpMessageCallback)(const acldumpChunk* chunk, int32_t length);

typedef enum {
  AIC_ERR_BRIEF_DUMP = 1,
  AIC_ERR_NORM_DUMP = 2,
  AIC_ERR_DETAIL_DUMP = 3,
  DATA_DUMP = 4,
  OVERFLOW_DUMP = 5
} acldumpType;

// Kept; there is nothing to deliver.
ACL_FUNC_VISIBILITY aclError acldumpRegCallback(acldumpMessageCallback messageCallback,
                                                int32_t flag);
ACL_FUNC_VISIBILITY void acldumpUnregCallback(void);
// dumpType is ACL_OP_DUMP_OP_AICORE_ARGS. Makes the directory.
ACL_FUNC_VISIBILITY aclError aclopStartDumpArgs(uint32_t dumpType, const char* path);
ACL_FUNC_VISIBILITY aclError aclopStopDumpArgs(uint32_t dumpType);
// NULL: nothing is dumped.
ACL_FUNC_VISIBILITY const char* acldumpGetPath(acldumpType dumpType);
ACL_FUNC_VISIBILITY aclError acldumpSaveExceptionInfo(const char* fileName, const char* userTag,
                                                      const acldumpTensorInfo* tensors,
                                                      size_t tensorCount);
ACL_FUNC_VISIBILITY aclError acldumpGetExceptionInfoPath(char* path, size_t maxLen);

#ifdef __cplusplus
}
#endif

#endif
