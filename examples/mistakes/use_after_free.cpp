// SPDX-License-Identifier: Apache-2.0
// An operator is given memory that was freed.
#include "mistake.h"

int main() {
  begin();
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y);
  must(aclrtFree(x));
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  must(aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor));
  aclnnLeakyRelu(nullptr, size, executor, nullptr);  // x was freed
  must(aclDestroyAclOpExecutor(executor));
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(y));
  end();
}
