// SPDX-License-Identifier: Apache-2.0
// The runtime.
#ifndef OPENACLNN_ACL_RT_H
#define OPENACLNN_ACL_RT_H

#include "acl/acl_base.h"          // IWYU pragma: export
#include "acl/acl_rt_allocator.h"  // IWYU pragma: export
#include "acl/rt/copies.h"         // IWYU pragma: export
#include "acl/rt/device.h"         // IWYU pragma: export
#include "acl/rt/errors.h"         // IWYU pragma: export
#include "acl/rt/graph.h"          // IWYU pragma: export
#include "acl/rt/kernels.h"        // IWYU pragma: export
#include "acl/rt/memory.h"         // IWYU pragma: export
#include "acl/rt/models.h"         // IWYU pragma: export
#include "acl/rt/notify.h"         // IWYU pragma: export
#include "acl/rt/sharing.h"        // IWYU pragma: export
#include "acl/rt/snapshot.h"       // IWYU pragma: export
#include "acl/rt/stream.h"         // IWYU pragma: export
#include "acl/rt/tasks.h"          // IWYU pragma: export
#include "acl/rt/types.h"          // IWYU pragma: export

#endif
