// SPDX-License-Identifier: Apache-2.0
// aclrtSetDevice is missing, and the status of later calls is ignored.
#include "mistake.h"

int main() {
  must(aclInit(nullptr));
  float input[kLength] = {};
  void* x = nullptr;
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  aclrtMalloc(&x, kBytes, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(x, kBytes, input, kBytes, ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtFree(x);
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
  must(aclFinalize());
}
