// SPDX-License-Identifier: Apache-2.0
// The results are copied back with the kind that copies to the device.
#include "mistake.h"

int main() {
  begin();
  float *x = device_memory(kBytes), result[kLength];
  must(aclrtMemcpy(result, kBytes, x, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  must(aclrtFree(x));
  end();
}
