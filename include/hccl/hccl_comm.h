// SPDX-License-Identifier: Apache-2.0
// Communicators. Ranks find each other through rank 0; the library in which PyTorch communicates
// (`openaclnn home --aten`) moves the data.
#ifndef OPENACLNN_HCCL_HCCL_COMM_H
#define OPENACLNN_HCCL_HCCL_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

ACL_FUNC_VISIBILITY HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo);
ACL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo,
                                                    uint32_t rank, HcclComm* comm);
ACL_FUNC_VISIBILITY HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks,
                                                          const HcclRootInfo* rootInfo,
                                                          uint32_t rank,
                                                          const HcclCommConfig* config,
                                                          HcclComm* comm);
ACL_FUNC_VISIBILITY HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms);
ACL_FUNC_VISIBILITY HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank,
                                                       HcclComm* comm);
ACL_FUNC_VISIBILITY HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank,
                                                             HcclCommConfig* config,
                                                             HcclComm* comm);
ACL_FUNC_VISIBILITY HcclResult HcclCommDestroy(HcclComm comm);
ACL_FUNC_VISIBILITY HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize);
ACL_FUNC_VISIBILITY HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank);
ACL_FUNC_VISIBILITY HcclResult HcclGetCommName(HcclComm comm, char* commName);
ACL_FUNC_VISIBILITY HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError);
ACL_FUNC_VISIBILITY const char* HcclGetErrorString(HcclResult code);
ACL_FUNC_VISIBILITY uint32_t HcclGetCommConfigCapability(void);
ACL_FUNC_VISIBILITY HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue);
ACL_FUNC_VISIBILITY HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue);

static inline void HcclCommConfigInit(HcclCommConfig* config) {
  typedef struct {
    size_t size;
    uint32_t magic;
    uint32_t version;
    uint64_t unused;
  } Head;
  Head* head = (Head*)config->reserved;
  head->size = sizeof(HcclCommConfig);
  head->magic = 0xf0f0f0f0u;
  head->version = 10;
  head->unused = 0;
  config->hcclBufferSize = 0xffffffffu;
  config->hcclDeterministic = 0xffffffffu;
  config->hcclCommName[0] = 0;
  config->hcclUdi[0] = 0;
  config->hcclOpExpansionMode = 0;
  config->hcclRdmaTrafficClass = 0xffffffffu;
  config->hcclRdmaServiceLevel = 0xffffffffu;
  config->hcclWorldRankID = 0;
  config->hcclJobID = 0;
  config->aclGraphZeroCopyEnable = 0;
  config->hcclExecTimeOut = -1;
  config->hcclAlgo[0] = 0;
  config->hcclRetryEnable[0] = 0;
  config->hcclRetryParams[0] = 0;
  config->hcclBufferName[0] = 0;
  config->hcclQos = 0xffffffffu;
}

#ifdef __cplusplus
}
#endif

#endif
