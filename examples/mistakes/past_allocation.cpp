// SPDX-License-Identifier: Apache-2.0
// More is copied than was allocated.
#include "mistake.h"

int main() {
  begin();
  float *x = device_memory(kBytes), input[2 * kLength] = {};
  aclrtMemcpy(x, 2 * kBytes, input, 2 * kBytes, ACL_MEMCPY_HOST_TO_DEVICE);
  must(aclrtFree(x));
  end();
}
