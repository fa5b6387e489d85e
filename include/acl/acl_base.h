// SPDX-License-Identifier: Apache-2.0
// The name under which older programs include the shared types.
#ifndef OPENACLNN_ACL_BASE_H
#define OPENACLNN_ACL_BASE_H

#include "acl/acl_base_rt.h"  // IWYU pragma: export

#endif
