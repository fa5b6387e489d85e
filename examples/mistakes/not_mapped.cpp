// SPDX-License-Identifier: Apache-2.0
// Addresses are reserved and used where no memory is mapped.
#include "mistake.h"

constexpr size_t kGranule = size_t{2} << 20;

int main() {
  begin();
  void* base = nullptr;
  must(aclrtReserveMemAddress(&base, 2 * kGranule, 0, nullptr, 1));
  aclrtPhysicalMemProp prop = {};
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  aclrtDrvMemHandle handle = nullptr;
  must(aclrtMallocPhysical(&handle, kGranule, &prop, 0));
  must(aclrtMapMem(base, kGranule, 0, handle, 0));
  must(aclrtMemset(base, kGranule, 0, kGranule));
  aclrtMemset(static_cast<char*>(base) + kGranule, kGranule, 0, kGranule);  // the half without
  must(aclrtUnmapMem(base));
  must(aclrtFreePhysical(handle));
  must(aclrtReleaseMemAddress(base));
  end();
}
