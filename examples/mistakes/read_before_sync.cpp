// SPDX-License-Identifier: Apache-2.0
// The results are copied back before the stream has been synchronised.
#include "mistake.h"

int main() {
  begin();
  aclrtStream stream = make_stream();
  float *x = device_memory(kBytes), *y = device_memory(kBytes), result[kLength];
  aclTensor *self = tensor(x), *out = tensor(y);
  leaky_relu(self, out, stream);
  must(aclrtMemcpy(result, kBytes, y, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));  // too early
  must(aclrtSynchronizeStream(stream));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtDestroyStream(stream));
  end();
}
