// SPDX-License-Identifier: Apache-2.0
// MSPTI, through which torch.profiler reads the work of a device: the functions, structures and
// values that the public interface description gives (hiascend.com, MSPTI API reference).
#pragma once

#include <cstddef>
#include <cstdint>

#define OPENACLNN_MSPTI extern "C" __attribute__((visibility("default")))

enum msptiResult {
  MSPTI_SUCCESS = 0,
  MSPTI_ERROR_INVALID_PARAMETER = 1,
  MSPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 2,
  MSPTI_ERROR_MAX_LIMIT_REACHED = 3,
  MSPTI_ERROR_QUEUE_EMPTY = 5,
  MSPTI_ERROR_INNER = 999
};

enum msptiActivityKind : int32_t {
  MSPTI_ACTIVITY_KIND_INVALID = 0,
  MSPTI_ACTIVITY_KIND_KERNEL = 2,
  MSPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION = 8,
  MSPTI_ACTIVITY_KIND_COUNT = 13
};

// Packed, aligned to 8 bytes.
#define OPENACLNN_RECORD __attribute__((packed)) __attribute__((aligned(8)))

struct OPENACLNN_RECORD msptiActivity {
  msptiActivityKind kind;
};
struct OPENACLNN_RECORD msptiActivityKernel {
  msptiActivityKind kind;
  uint64_t start, end;  // nanoseconds of the wall clock
  struct {
    uint32_t deviceId, streamId;
  } ds;
  uint64_t correlationId;
  const char* type;
  const char* name;
};
struct msptiActivityExternalCorrelation {
  msptiActivityKind kind;
  uint32_t externalKind;
  uint64_t externalId;
  uint64_t correlationId;
};

using msptiSubscriberHandle = void*;
using msptiCallbackFunc = void (*)(void*, int, uint32_t, const void*);
using msptiBuffersCallbackRequestFunc = void (*)(uint8_t** buffer, size_t* size,
                                                 size_t* maxNumRecords);
using msptiBuffersCallbackCompleteFunc = void (*)(uint8_t* buffer, size_t size, size_t validSize);

OPENACLNN_MSPTI msptiResult msptiSubscribe(msptiSubscriberHandle* subscriber,
                                           msptiCallbackFunc callback, void* userdata);
OPENACLNN_MSPTI msptiResult msptiUnsubscribe(msptiSubscriberHandle subscriber);
OPENACLNN_MSPTI msptiResult
msptiActivityRegisterCallbacks(msptiBuffersCallbackRequestFunc funcBufferRequested,
                               msptiBuffersCallbackCompleteFunc funcBufferCompleted);
OPENACLNN_MSPTI msptiResult msptiActivityEnable(msptiActivityKind kind);
OPENACLNN_MSPTI msptiResult msptiActivityDisable(msptiActivityKind kind);
OPENACLNN_MSPTI msptiResult msptiActivityFlushAll(uint32_t flag);
OPENACLNN_MSPTI msptiResult msptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                                       msptiActivity** record);
OPENACLNN_MSPTI msptiResult msptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id);
OPENACLNN_MSPTI msptiResult msptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t* lastId);
