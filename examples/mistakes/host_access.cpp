// SPDX-License-Identifier: Apache-2.0
// The host writes its input straight into device memory.
#include "mistake.h"

int main() {
  begin();
  float* x = device_memory(kBytes);
  x[3] = 1.0f;  // device memory is written by aclrtMemcpy only
  must(aclrtFree(x));
  end();
}
