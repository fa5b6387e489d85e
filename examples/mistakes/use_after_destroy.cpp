// SPDX-License-Identifier: Apache-2.0
// A tensor is destroyed and then given to phase 1.
#include "mistake.h"

int main() {
  begin();
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  must(aclDestroyTensor(self));
  aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor);  // self was destroyed
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  end();
}
