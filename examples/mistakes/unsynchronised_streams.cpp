// SPDX-License-Identifier: Apache-2.0
// A second stream reads what the first one writes, and nothing orders the two.
#include "mistake.h"

int main() {
  begin();
  aclrtStream first = make_stream(), second = make_stream();
  float *x = device_memory(kBytes), *y = device_memory(kBytes), *z = device_memory(kBytes);
  aclTensor *a = tensor(x), *b = tensor(y), *c = tensor(z);
  leaky_relu(a, b, first);
  leaky_relu(b, c, second);  // b may not be there yet
  must(aclrtSynchronizeStream(first));
  must(aclrtSynchronizeStream(second));
  for (aclTensor* each : {a, b, c}) must(aclDestroyTensor(each));
  for (float* each : {x, y, z}) must(aclrtFree(each));
  must(aclrtDestroyStream(first));
  must(aclrtDestroyStream(second));
  end();
}
