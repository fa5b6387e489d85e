// SPDX-License-Identifier: Apache-2.0
// Notifications between streams, and waits for values in memory.
#ifndef OPENACLNN_ACL_RT_NOTIFY_H
#define OPENACLNN_ACL_RT_NOTIFY_H

#include <stddef.h>
#include <stdint.h>

#include "acl/rt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void* aclrtNotify;

// ---- A flag that one waiting stream consumes; timeout in seconds, 0 is for ever ----

ACL_FUNC_VISIBILITY aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag);
ACL_FUNC_VISIBILITY aclError aclrtDestroyNotify(aclrtNotify notify);
ACL_FUNC_VISIBILITY aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream,
                                                     uint32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId);
ACL_FUNC_VISIBILITY aclError aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num);

// ---- Notifications of another process: a key of 65 bytes with its terminating zero ----

ACL_FUNC_VISIBILITY aclError aclrtNotifyGetExportKey(aclrtNotify notify, char* key, size_t len,
                                                     uint64_t flags);
ACL_FUNC_VISIBILITY aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t* pid, size_t num);
ACL_FUNC_VISIBILITY aclError aclrtNotifyImportByKey(aclrtNotify* notify, const char* key,
                                                    uint64_t flags);

// ---- 64 bits in device memory, aligned to 8 bytes ----

ACL_FUNC_VISIBILITY aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag,
                                             aclrtStream stream);
// flag is one of ACL_STREAM_WAIT_VALUE_*. No time limit.
ACL_FUNC_VISIBILITY aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag,
                                            aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif
