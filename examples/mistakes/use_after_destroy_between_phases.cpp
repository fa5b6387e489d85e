// SPDX-License-Identifier: Apache-2.0
// A tensor is destroyed after phase 1, before phase 2 has run with it.
#include "mistake.h"

int main() {
  begin();
  aclrtStream stream = make_stream();
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  must(aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor));
  must(aclDestroyTensor(self));
  must(aclnnLeakyRelu(nullptr, size, executor, stream));  // may still read self
  must(aclrtSynchronizeStream(stream));
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtDestroyStream(stream));
  end();
}
