// SPDX-License-Identifier: Apache-2.0
// The next input is copied in while the stream may still read the last one.
#include "mistake.h"

int main() {
  begin();
  aclrtStream stream = make_stream();
  float *x = device_memory(kBytes), *y = device_memory(kBytes), input[kLength] = {};
  aclTensor *self = tensor(x), *out = tensor(y);
  leaky_relu(self, out, stream);
  must(aclrtMemcpy(x, kBytes, input, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));  // too early
  must(aclrtSynchronizeStream(stream));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtDestroyStream(stream));
  end();
}
