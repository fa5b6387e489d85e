// SPDX-License-Identifier: Apache-2.0
// The types that every header shares, and all codes.
#ifndef OPENACLNN_ACL_BASE_H
#define OPENACLNN_ACL_BASE_H

#include "acl/acl_base_mdl.h"                // IWYU pragma: export
#include "acl/acl_base_rt.h"                 // IWYU pragma: export
#include "acl/error_codes/ge_error_codes.h"  // IWYU pragma: export
#include "acl/error_codes/rt_error_codes.h"  // IWYU pragma: export

#endif
