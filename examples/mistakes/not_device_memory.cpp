// SPDX-License-Identifier: Apache-2.0
// An array of the program is given to an operator as if it lay on the device.
#include "mistake.h"

int main() {
  begin();
  float *y = device_memory(kBytes), input[kLength] = {};
  aclTensor *self = tensor(input), *out = tensor(y);  // input lies on the host
  leaky_relu(self, out, nullptr);
  must(aclrtSynchronizeStream(nullptr));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(y));
  end();
}
