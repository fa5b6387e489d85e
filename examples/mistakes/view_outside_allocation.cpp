// SPDX-License-Identifier: Apache-2.0
// Memory was allocated for as many bytes as the tensor has elements.
#include "mistake.h"

int main() {
  begin();
  float *x = device_memory(kBytes), *y = device_memory(kLength);  // should be kBytes
  aclTensor *self = tensor(x), *out = tensor(y);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  must(aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor));
  aclnnLeakyRelu(nullptr, size, executor, nullptr);
  must(aclDestroyAclOpExecutor(executor));
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  end();
}
