// SPDX-License-Identifier: Apache-2.0
// The umbrella that programs include.
#ifndef OPENACLNN_ACL_H
#define OPENACLNN_ACL_H

#include "acl/acl_base.h"  // IWYU pragma: export
#include "acl/acl_mdl.h"   // IWYU pragma: export
#include "acl/acl_op.h"    // IWYU pragma: export
#include "acl/acl_rt.h"    // IWYU pragma: export

#endif
