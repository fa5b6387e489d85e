// SPDX-License-Identifier: Apache-2.0
// What a kernel library reads of its arguments. These functions are openaclnn's: CANN reads scalars
// and arrays through C++ classes that only its own sources have.
#ifndef OPENACLNN_READ_H
#define OPENACLNN_READ_H

#include "aclnn/acl_meta.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OPENACLNN_MAX_DIMS 25

// Element [i, j, ...] is at data + (i * strides[0] + j * strides[1] + ...) * elementSize.
typedef struct {
  aclDataType dataType;
  uint64_t elementSize;  // bytes; 0 for dtypes of less than one byte
  uint64_t rank;
  int64_t shape[OPENACLNN_MAX_DIMS];
  int64_t strides[OPENACLNN_MAX_DIMS];  // in elements
  void* data;                           // the first element: the offset is added
} openaclnnTensorView;

ACL_FUNC_VISIBILITY aclnnStatus openaclnnReadTensor(const aclTensor* tensor,
                                                    openaclnnTensorView* view);
// Real numbers of any dtype, bool included; integers beyond 2^53 are rounded.
ACL_FUNC_VISIBILITY aclnnStatus openaclnnReadScalar(const aclScalar* scalar, double* value);
// The values belong to the array and live as long as it does.
ACL_FUNC_VISIBILITY aclnnStatus openaclnnReadIntArray(const aclIntArray* array,
                                                      const int64_t** values, uint64_t* size);
ACL_FUNC_VISIBILITY aclnnStatus openaclnnReadFloatArray(const aclFloatArray* array,
                                                        const float** values, uint64_t* size);
ACL_FUNC_VISIBILITY aclnnStatus openaclnnReadBoolArray(const aclBoolArray* array,
                                                       const bool** values, uint64_t* size);
ACL_FUNC_VISIBILITY aclnnStatus openaclnnReadTensorList(const aclTensorList* list,
                                                        const aclTensor* const** values,
                                                        uint64_t* size);
ACL_FUNC_VISIBILITY aclnnStatus openaclnnReadScalarList(const aclScalarList* list,
                                                        const aclScalar* const** values,
                                                        uint64_t* size);
// Keeps "function: sentence" for aclGetRecentErrMsg and returns the status, which must not be 0.
ACL_FUNC_VISIBILITY aclnnStatus openaclnnRefuse(const char* function, aclnnStatus status,
                                                const char* sentence);

#ifdef __cplusplus
}
#endif

#endif
