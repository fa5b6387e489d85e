// SPDX-License-Identifier: Apache-2.0
// A tensor and its memory are still there at aclFinalize.
#include "mistake.h"

int main() {
  begin();
  float* x = device_memory(kBytes);
  aclTensor* self = tensor(x);
  if (self == nullptr) return 1;
  end();
}
