// SPDX-License-Identifier: Apache-2.0
// Memory is freed twice.
#include "mistake.h"

int main() {
  begin();
  float* x = device_memory(kBytes);
  must(aclrtFree(x));
  aclrtFree(x);
  end();
}
