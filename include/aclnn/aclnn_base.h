// SPDX-License-Identifier: Apache-2.0
// What every operator header includes first.
#ifndef OPENACLNN_ACLNN_BASE_H
#define OPENACLNN_ACLNN_BASE_H

#include "acl/acl_base.h"    // IWYU pragma: export
#include "aclnn/acl_meta.h"  // IWYU pragma: export

#ifdef __cplusplus
extern "C" {
#endif

// Initialises programs that use operators only; may be repeated. A missing file means defaults.
ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char* configPath);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize(void);

#ifdef __cplusplus
}
#endif

#endif
