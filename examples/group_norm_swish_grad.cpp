// SPDX-License-Identifier: Apache-2.0
// aclnnGroupNormSwishGrad: three gradients of a group norm with swish, from what its forward pass
// kept.
//
//   openaclnn cc group_norm_swish_grad.cpp -o group_norm_swish_grad && ./group_norm_swish_grad
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_group_norm_swish_grad.h"

static void check(int status, const char* call) {
  if (status == ACL_SUCCESS) return;
  std::printf("%s returned %d\n%s", call, status, aclGetRecentErrMsg());
  std::exit(1);
}
#define CHECK(call) check(call, #call)

// A tensor on the device with its memory.
struct DeviceTensor {
  void* data = nullptr;
  aclTensor* tensor = nullptr;
};

static DeviceTensor to_device(const std::vector<float>& values, const std::vector<int64_t>& shape) {
  DeviceTensor made;
  const size_t bytes = values.size() * sizeof(float);
  CHECK(aclrtMalloc(&made.data, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(made.data, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  made.tensor = aclCreateTensor(shape.data(), shape.size(), ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND,
                                shape.data(), shape.size(), made.data);
  return made;
}

static std::vector<float> to_host(const DeviceTensor& from, size_t count) {
  std::vector<float> values(count);
  const size_t bytes = count * sizeof(float);
  CHECK(aclrtMemcpy(values.data(), bytes, from.data, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  return values;
}

static void destroy(const DeviceTensor& made) {
  CHECK(aclDestroyTensor(made.tensor));
  CHECK(aclrtFree(made.data));
}

static void print(const char* name, const std::vector<float>& values) {
  std::printf("%s:", name);
  for (float value : values) std::printf(" %.6g", value);
  std::printf("\n");
}

// Phase 2 of a plan: its workspace, its work on the stream, and the wait for both.
template <class Phase2>
static void run(Phase2 phase2, uint64_t size, aclOpExecutor* executor, aclrtStream stream) {
  void* workspace = nullptr;
  if (size > 0) CHECK(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(phase2(workspace, size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));
  if (workspace != nullptr) CHECK(aclrtFree(workspace));
}

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK(aclrtCreateStream(&stream));

  // One sample of four channels in two groups, each channel of two values.
  const std::vector<int64_t> shape = {1, 4, 2};
  DeviceTensor x = to_device({1, 2, 3, 4, -1, 0, 1, 4}, shape);
  DeviceTensor dy = to_device({1, -1, 0.5f, 2, 1, 1, -2, 0.25f}, shape);
  DeviceTensor mean = to_device({2.5f, 1}, {1, 2});               // of the groups of x
  DeviceTensor rstd = to_device({0.894427f, 0.534522f}, {1, 2});  // 1 / sqrt(variance)
  DeviceTensor gamma = to_device({1, 0.5f, 2, -1}, {4}), beta = to_device({0, 1, -1, 0.5f}, {4});
  DeviceTensor dx = to_device(std::vector<float>(8), shape);
  DeviceTensor dgamma = to_device(std::vector<float>(4), {4});
  DeviceTensor dbeta = to_device(std::vector<float>(4), {4});

  char format[] = "NCHW";
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnGroupNormSwishGradGetWorkspaceSize(
      dy.tensor, mean.tensor, rstd.tensor, x.tensor, gamma.tensor, beta.tensor, 2, format, 1.0,
      true, true, dx.tensor, dgamma.tensor, dbeta.tensor, &size, &executor));
  run(aclnnGroupNormSwishGrad, size, executor, stream);
  print("dx", to_host(dx, 8));
  print("dgamma", to_host(dgamma, 4));
  print("dbeta", to_host(dbeta, 4));

  for (const DeviceTensor& each : {x, dy, mean, rstd, gamma, beta, dx, dgamma, dbeta})
    destroy(each);
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
