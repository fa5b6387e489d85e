// SPDX-License-Identifier: Apache-2.0
// The second spelling under which clients include the operator macro.
#ifndef OPENACLNN_ACLNN_ACLNN_UTIL_H
#define OPENACLNN_ACLNN_ACLNN_UTIL_H

#include "aclnnop/aclnn_util.h"  // IWYU pragma: export

#endif
