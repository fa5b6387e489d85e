// SPDX-License-Identifier: Apache-2.0
// The style of quick samples: nothing is released, except late, from an exit handler and from a
// static object, after the device was reset and acl finalised twice.
#include <cstdlib>
#include <iostream>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_ops_nn.h"

static aclTensor* tensor = nullptr;
static void* memory = nullptr;
static aclrtStream stream = nullptr;

struct AtTheVeryEnd {
  ~AtTheVeryEnd() {
    aclDestroyTensor(tensor);
    aclFinalize();
  }
} last;

static void at_exit() {
  aclrtFree(memory);
  aclrtDestroyStream(stream);
}

int main() {
  std::atexit(at_exit);
  aclInit(nullptr);
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtCreateStream(&stream);
  const int64_t dims[] = {2, 2};
  aclrtMalloc(&memory, 16, aclrtMemMallocPolicy::ACL_MEM_MALLOC_HUGE_FIRST);
  const float values[] = {-4, -2, 0, 2};
  aclrtMemcpy(memory, 16, values, 16, aclrtMemcpyKind::ACL_MEMCPY_HOST_TO_DEVICE);
  tensor = aclCreateTensor(dims, 2, aclDataType::ACL_FLOAT, nullptr, 0, ACL_FORMAT_NCHW, dims, 2,
                           memory);
  float slope = 0.25f;
  aclScalar* negativeSlope = aclCreateScalar(&slope, aclDataType::ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  int status = aclnnInplaceLeakyReluGetWorkspaceSize(tensor, negativeSlope, &size, &executor);
  if (status == 0) status = aclnnInplaceLeakyRelu(nullptr, size, executor, stream);
  if (status == 0) status = aclrtSynchronizeStreamWithTimeout(stream, 5000);
  float result[4] = {};
  aclrtMemcpy(result, 16, memory, 16, aclrtMemcpyKind::ACL_MEMCPY_DEVICE_TO_HOST);
  std::cout << result[0] << " " << result[1] << " " << result[2] << " " << result[3] << std::endl;
  aclrtResetDevice(0);
  aclFinalize();
  return status;
}
