// SPDX-License-Identifier: Apache-2.0
// Phase 1 refuses the shapes, and the program ignores its status.
#include "mistake.h"

int main() {
  begin();
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y, kLength / 2);  // should be kLength
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor);
  aclnnLeakyRelu(nullptr, size, executor, nullptr);
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  end();
}
