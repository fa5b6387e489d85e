// SPDX-License-Identifier: Apache-2.0
// The input was never copied to the device.
#include "mistake.h"

int main() {
  begin();
  void* x = nullptr;
  must(aclrtMalloc(&x, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  float* y = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y);
  leaky_relu(self, out, nullptr);
  must(aclrtSynchronizeStream(nullptr));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  end();
}
