// SPDX-License-Identifier: Apache-2.0
// Phase 1 once, phase 2 many times: a repeatable executor whose addresses move from batch to batch.
//
//   source $(openaclnn home)/set_env.sh; H=$ASCEND_HOME_PATH
//   g++ repeatable.cpp -I$H/include -L$H/lib64 -lopapi_nn -lascendcl -lnnopbase -o repeatable
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "acl/acl.h"
#include "aclnnop/aclnn_leaky_relu.h"

static void check(int status, const char* call) {
  if (status == ACL_SUCCESS) return;
  std::printf("%s returned %d\n%s", call, status, aclGetRecentErrMsg());
  std::exit(1);
}
#define CHECK(call) check(call, #call)

int main() {
  constexpr int kBatches = 3, kLength = 4;
  float x[kBatches][kLength], y[kBatches][kLength];
  for (int b = 0; b < kBatches; ++b) {
    for (int i = 0; i < kLength; ++i) {
      x[b][i] = static_cast<float>(10 * b + i - 2) * (i % 2 == 0 ? 1.0f : -1.0f);
    }
  }

  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));
  void *x_device[kBatches], *y_device[kBatches];
  for (int b = 0; b < kBatches; ++b) {
    CHECK(aclrtMalloc(&x_device[b], sizeof x[b], ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMalloc(&y_device[b], sizeof y[b], ACL_MEM_MALLOC_HUGE_FIRST));
    CHECK(aclrtMemcpy(x_device[b], sizeof x[b], x[b], sizeof x[b], ACL_MEMCPY_HOST_TO_DEVICE));
  }

  const int64_t shape[] = {kLength};
  aclTensor* self =
      aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, x_device[0]);
  aclTensor* out =
      aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, y_device[0]);
  float slope = 0.5f;
  aclScalar* negative_slope = aclCreateScalar(&slope, ACL_FLOAT);

  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnLeakyReluGetWorkspaceSize(self, negative_slope, out, &workspace_size, &executor));
  CHECK(aclSetAclOpExecutorRepeatable(executor));  // from now on phase 2 does not consume it
  for (int b = 0; b < kBatches; ++b) {
    CHECK(aclSetInputTensorAddr(executor, 0, self, x_device[b]));
    CHECK(aclSetOutputTensorAddr(executor, 0, out, y_device[b]));
    CHECK(aclnnLeakyRelu(nullptr, workspace_size, executor, stream));
  }
  CHECK(aclrtSynchronizeStream(stream));
  CHECK(aclDestroyAclOpExecutor(executor));

  for (int b = 0; b < kBatches; ++b) {
    CHECK(aclrtMemcpy(y[b], sizeof y[b], y_device[b], sizeof y[b], ACL_MEMCPY_DEVICE_TO_HOST));
    CHECK(aclrtFree(x_device[b]));
    CHECK(aclrtFree(y_device[b]));
    std::printf("batch %d: %g %g %g %g\n", b, y[b][0], y[b][1], y[b][2], y[b][3]);
  }

  aclDestroyTensor(self);
  aclDestroyTensor(out);
  aclDestroyScalar(negative_slope);
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
