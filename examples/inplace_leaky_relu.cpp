// SPDX-License-Identifier: Apache-2.0
// aclnnInplaceLeakyRelu on half-precision numbers: the tensor is input and output in one.
//
//   openaclnn cc inplace_leaky_relu.cpp -o inplace_leaky_relu && ./inplace_leaky_relu
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_leaky_relu.h"

static void check(int status, const char* call) {
  if (status == ACL_SUCCESS) return;
  std::printf("%s returned %d\n%s", call, status, aclGetRecentErrMsg());
  std::exit(1);
}
#define CHECK(call) check(call, #call)

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));

  // Seven halves, in a tensor of the host first.
  const int64_t shape[] = {7};
  aclFloat16 values[7];
  for (int i = 0; i < 7; ++i) values[i] = aclFloatToFloat16(static_cast<float>(i - 3));
  void* data = nullptr;
  CHECK(aclrtMalloc(&data, sizeof values, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(data, sizeof values, values, sizeof values, ACL_MEMCPY_HOST_TO_DEVICE));
  aclTensor* self =
      aclCreateTensor(shape, 1, ACL_FLOAT16, nullptr, 0, ACL_FORMAT_ND, shape, 1, data);
  float slope = 0.1f;
  aclScalar* negative_slope = aclCreateScalar(&slope, ACL_FLOAT);

  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnInplaceLeakyReluGetWorkspaceSize(self, negative_slope, &workspace_size, &executor));
  void* workspace = nullptr;
  if (workspace_size > 0) CHECK(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnInplaceLeakyRelu(workspace, workspace_size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));

  CHECK(aclrtMemcpy(values, sizeof values, data, sizeof values, ACL_MEMCPY_DEVICE_TO_HOST));
  std::printf("self:");
  for (aclFloat16 value : values) std::printf(" %.6g", aclFloat16ToFloat(value));
  std::printf("\n");

  CHECK(aclDestroyTensor(self));
  CHECK(aclDestroyScalar(negative_slope));
  CHECK(aclrtFree(data));
  if (workspace != nullptr) CHECK(aclrtFree(workspace));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
