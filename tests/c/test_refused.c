/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are declared and refuse: pointers and communicators are checked first, results are
   set to zero, and a sentence says why. Built as C11, and as C++17 by test_refused.cpp. */
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "hccl/hccl.h"
#include "hccl/hccl_comm.h"

static int failures = 0;

static void expect(int line, int got, int want, const char* sentence) {
  const char* const text = aclGetRecentErrMsg();
  if (got == want && text != NULL && strstr(text, sentence) != NULL) return;
  ++failures;
  fprintf(stderr, "test_refused.c:%d: got %d, want %d: %s\n", line, got, want,
          text == NULL ? "no sentence" : text);
}
#define EXPECT(call, want, sentence) expect(__LINE__, (int)(call), (int)(want), sentence)

static uint32_t at_stage(int32_t device, void* args) {
  (void)device, (void)args;
  return 0;
}

static void snapshots(void) {
  const char* const why = "a process cannot save its device";
  EXPECT(aclrtSnapShotProcessLock(1, NULL), 207000, why);
  EXPECT(aclrtSnapShotProcessUnlock(1, NULL), 207000, why);
  EXPECT(aclrtSnapShotProcessBackup(1, NULL), 207000, why);
  EXPECT(aclrtSnapShotProcessRestore(1, NULL), 207000, why);
  EXPECT(aclrtSnapShotCallbackRegister(ACL_RT_SNAPSHOT_LOCK_PRE, at_stage, NULL), 207000, why);
  EXPECT(aclrtSnapShotCallbackUnregister(ACL_RT_SNAPSHOT_UNLOCK_POST, at_stage), 207000, why);
}

static void kernels(void) {
  const char* const why = "kernels compiled for an NPU cannot run on a CPU";
  int object = 0;
  void* args[1] = {&object};
  dim3 grid = {2, 3, 4};
  dim3 block = {32, 1, 1};
  aclrtPlaceHolderInfo holder = {0, 0};
  if (sizeof(dim3) != 12 || grid.x != 2 || grid.y != 3 || grid.z != 4) ++failures;
  EXPECT(aclrtLaunchSIMTKernelWithArgsArray(&object, grid, block, 64, NULL, NULL, args), 200001,
         why);
  EXPECT(aclrtLaunchSIMTKernelWithArgsArray(NULL, grid, block, 64, NULL, NULL, args), 100000,
         "func must not be NULL");
  EXPECT(aclrtLaunchSIMTKernelWithHostArgs(&object, grid, block, 0, NULL, NULL, &object,
                                           sizeof object, &holder, 1),
         200001, why);
  EXPECT(aclrtLaunchSIMTKernelWithHostArgs(NULL, grid, block, 0, NULL, NULL, NULL, 0, NULL, 0),
         100000, "func must not be NULL");
#ifdef __cplusplus
  constexpr dim3 line(7);
  static_assert(line.x == 7 && line.y == 1 && line.z == 1, "what is left out is 1");
  EXPECT(aclrtLaunchSIMTKernelWithArgsArray(&object, 8, dim3(), 0, NULL, NULL, args), 200001, why);
#endif
}

static void rank_tables(void) {
  int object = 0;
  HcclComm comm = &object;
  EXPECT(HcclCommInitClusterInfo("no such file", 0, &comm), HCCL_E_NOT_SUPPORT, "rank tables");
  if (comm != NULL) ++failures;
  comm = &object;
  EXPECT(HcclCommInitClusterInfoConfig("", UINT32_MAX, NULL, &comm), HCCL_E_NOT_SUPPORT,
         "call HcclCommInitRootInfo");
  if (comm != NULL) ++failures;
  EXPECT(HcclCommInitClusterInfo(NULL, 0, &comm), HCCL_E_PTR, "clusterInfo must not be NULL");
  EXPECT(HcclCommInitClusterInfo("x", 0, NULL), HCCL_E_PTR, "comm must not be NULL");
}

static void communicators(void) {
  int object = 0;
  void* handle = &object;
  HcclComm wrong[2];
  wrong[0] = NULL, wrong[1] = &object;
  for (int i = 0; i < 2; ++i) {
    const HcclComm c = wrong[i];
    const char* const why = "comm was destroyed or never created";
    uint32_t rank = 0;
    bool backup = false;
    EXPECT(HcclCommSuspend(c), HCCL_E_PARA, why);
    EXPECT(HcclCommResume(c), HCCL_E_PARA, why);
    EXPECT(HcclCommWorkingDevNicSet(c, &rank, &backup, 1), HCCL_E_PARA, why);
    EXPECT(HcclCommSetMemoryRange(c, &object, 8, 8, 0), HCCL_E_PARA, why);
    EXPECT(HcclCommUnsetMemoryRange(c, &object), HCCL_E_PARA, why);
    EXPECT(HcclCommActivateCommMemory(c, &object, 8, 0, NULL, 0), HCCL_E_PARA, why);
    EXPECT(HcclCommDeactivateCommMemory(c, &object), HCCL_E_PARA, why);
    EXPECT(HcclCommRegister(c, &object, 8, &handle, 0), HCCL_E_PARA, why);
    if (handle != NULL) ++failures;
    EXPECT(HcclCommDeregister(c, &object), HCCL_E_PARA, why);
    EXPECT(HcclCommExchangeMem(c, &object, &rank, 1), HCCL_E_PARA, why);
  }
  EXPECT(HcclCommRegister(NULL, &object, 8, NULL, 0), HCCL_E_PTR, "handle must not be NULL");
}

int main(void) {
  snapshots();
  kernels();
  rank_tables();
  communicators();
  return failures == 0 ? 0 : 1;
}
