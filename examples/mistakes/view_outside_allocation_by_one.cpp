// SPDX-License-Identifier: Apache-2.0
// One element less is allocated than the tensor has.
#include "mistake.h"

int main() {
  begin();
  float *x = device_memory(kBytes), *y = device_memory((kLength - 1) * sizeof(float));
  aclTensor *self = tensor(x), *out = tensor(y);
  leaky_relu(self, out, nullptr);
  must(aclrtSynchronizeStream(nullptr));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  end();
}
