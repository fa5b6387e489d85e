// SPDX-License-Identifier: Apache-2.0
// Work is put on a stream of device 0 while device 1 is current.
#include "mistake.h"

int main() {
  setenv("OPENACLNN_DEVICES", "2", 1);  // on a machine with any number of them
  begin();
  aclrtStream stream = make_stream();
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y);
  must(aclrtSetDevice(1));
  leaky_relu(self, out, stream);  // its device is 0
  must(aclrtSetDevice(0));
  must(aclrtSynchronizeStream(stream));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtDestroyStream(stream));
  must(aclrtResetDevice(1));
  must(aclrtResetDevice(0));  // it was set twice
  end();
}
