// SPDX-License-Identifier: Apache-2.0
// Memory is allocated and copied after aclFinalize; here the calls succeed.
#include "mistake.h"

int main() {
  begin();
  float* x = device_memory(kBytes);
  float host[kLength];
  must(aclrtFree(x));
  must(aclFinalize());
  x = device_memory(kBytes);
  must(aclrtMemcpy(host, kBytes, x, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  must(aclrtFree(x));
  must(aclrtResetDevice(0));
}
