// SPDX-License-Identifier: Apache-2.0
// Phase 2 is called twice with an executor that was not made repeatable.
#include "mistake.h"

int main() {
  begin();
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  must(aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor));
  must(aclnnLeakyRelu(nullptr, size, executor, nullptr));
  aclnnLeakyRelu(nullptr, size, executor, nullptr);  // the first run consumed it
  must(aclrtSynchronizeStream(nullptr));
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  end();
}
