// SPDX-License-Identifier: Apache-2.0
// What the runtime knows of an address.
#include <unistd.h>

#include "acl/acl_rt.h"
#include "core/runtime/arguments.h"
#include "core/runtime/memory.h"

using namespace openaclnn;

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  constexpr const char* call = "aclrtPointerGetAttributes";
  Status status = not_null(call, "ptr", ptr);
  if (status.ok()) status = not_null(call, "attributes", attributes);
  if (!status.ok()) return status.code();
  *attributes = {{0, ACL_MEM_LOCATION_TYPE_UNREGISTERED}, 0, {0, 0, 0, 0}};
  const Allocation found = find_allocation(ptr);
  if (found.behind == 0) return ACL_SUCCESS;
  attributes->pageSize = static_cast<uint32_t>(sysconf(_SC_PAGESIZE));
  if (found.kind == MemoryKind::device) {
    attributes->location = {static_cast<uint32_t>(found.device), ACL_MEM_LOCATION_TYPE_DEVICE};
  } else {
    attributes->location.type = ACL_MEM_LOCATION_TYPE_HOST;
  }
  return ACL_SUCCESS;
}
