// SPDX-License-Identifier: Apache-2.0
// The functions of libhccl and libhcomm. Types and results are those of HcclDataType, HcclReduceOp
// and HcclResult; handles are opaque.
#pragma once

#include <cstddef>
#include <cstdint>

#define OPENACLNN_HCCL extern "C" __attribute__((visibility("default")))

struct HcclSendRecvItem {
  int32_t sendRecvType;  // 0: send, 1: receive
  void* buf;
  uint64_t count;
  int32_t dataType;
  uint32_t remoteRank;
};

inline constexpr size_t kRootInfoBytes = 4108;  // HcclRootInfo

OPENACLNN_HCCL int32_t HcclGetRootInfo(char* rootInfo);
OPENACLNN_HCCL int32_t HcclCommInitRootInfo(uint32_t nRanks, const char* rootInfo, uint32_t rank,
                                            void** comm);
OPENACLNN_HCCL int32_t HcclCommInitRootInfoConfig(uint32_t nRanks, const char* rootInfo,
                                                  uint32_t rank, const void* config, void** comm);
OPENACLNN_HCCL int32_t HcclCommDestroy(void* comm);
OPENACLNN_HCCL int32_t HcclGetCommName(void* comm, char* name);
OPENACLNN_HCCL int32_t HcclGetCommAsyncError(void* comm, int32_t* error);
OPENACLNN_HCCL uint32_t HcclGetCommConfigCapability(void);
OPENACLNN_HCCL int32_t HcclSetConfig(int32_t key, int32_t value);

OPENACLNN_HCCL int32_t HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, int32_t dataType,
                                     int32_t op, void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclBroadcast(void* buf, uint64_t count, int32_t dataType, uint32_t root,
                                     void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount,
                                     int32_t dataType, void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf,
                                      const void* recvCounts, const void* recvDispls,
                                      int32_t dataType, void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                                         int32_t dataType, int32_t op, void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclReduceScatterV(void* sendBuf, const void* sendCounts,
                                          const void* sendDispls, void* recvBuf, uint64_t recvCount,
                                          int32_t dataType, int32_t op, void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, int32_t dataType,
                                  int32_t op, uint32_t root, void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                                   int32_t dataType, uint32_t root, void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclAlltoAll(const void* sendBuf, uint64_t sendCount, int32_t sendType,
                                    const void* recvBuf, uint64_t recvCount, int32_t recvType,
                                    void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclAlltoAllV(const void* sendBuf, const void* sendCounts,
                                     const void* sdispls, int32_t sendType, const void* recvBuf,
                                     const void* recvCounts, const void* rdispls, int32_t recvType,
                                     void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclSend(void* sendBuf, uint64_t count, int32_t dataType, uint32_t destRank,
                                void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclRecv(void* recvBuf, uint64_t count, int32_t dataType, uint32_t srcRank,
                                void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclBatchSendRecv(const HcclSendRecvItem* sendRecvInfo, uint32_t itemNum,
                                         void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclGroupStart(void);
OPENACLNN_HCCL int32_t HcclGroupEnd(void);
OPENACLNN_HCCL int32_t HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix,
                                      int32_t sendType, const void* recvBuf, int32_t recvType,
                                      void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclBarrier(void* comm, void* stream);
OPENACLNN_HCCL int32_t HcclGetRankSize(void* comm, uint32_t* rankSize);
OPENACLNN_HCCL int32_t HcclGetRankId(void* comm, uint32_t* rank);
OPENACLNN_HCCL const char* HcclGetErrorString(int32_t code);
OPENACLNN_HCCL int32_t HcclGetConfig(int32_t config, int32_t* configValue);
OPENACLNN_HCCL int32_t HcclCommInitAll(uint32_t ndev, int32_t* devices, void** comms);
OPENACLNN_HCCL int32_t HcclCreateSubCommConfig(void** comm, uint32_t rankNum, uint32_t* rankIds,
                                               uint64_t subCommId, uint32_t subCommRankId,
                                               void* config, void** subComm);
