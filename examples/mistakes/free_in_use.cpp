// SPDX-License-Identifier: Apache-2.0
// Memory is freed while a stream may still write it.
#include "mistake.h"

int main() {
  begin();
  aclrtStream stream = make_stream();
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y);
  leaky_relu(self, out, stream);
  must(aclrtFree(y));  // the stream was not synchronised
  must(aclrtSynchronizeStream(stream));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtDestroyStream(stream));
  end();
}
