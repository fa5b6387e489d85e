// SPDX-License-Identifier: Apache-2.0
// One element more is copied than was allocated.
#include "mistake.h"

int main() {
  begin();
  float *x = device_memory((kLength - 1) * sizeof(float)), input[kLength] = {};
  must(aclrtMemcpy(x, kBytes, input, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  must(aclrtFree(x));
  end();
}
