// SPDX-License-Identifier: Apache-2.0
// aclnnLogitGrad with and without eps, which keeps the gradient finite near 0 and 1.
//
//   openaclnn cc logit_grad.cpp -o logit_grad && ./logit_grad
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_logit_grad.h"

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

  const std::vector<int64_t> shape = {6};
  DeviceTensor x = to_device({0.001f, 0.1f, 0.25f, 0.5f, 0.75f, 0.999f}, shape);
  DeviceTensor dy = to_device({1, 1, -2, 4, 3, 1}, shape);
  DeviceTensor out = to_device(std::vector<float>(6), shape);

  for (double eps : {0.05, -1.0}) {  // negative: no limit
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnLogitGradGetWorkspaceSize(x.tensor, dy.tensor, eps, out.tensor, &size, &executor));
    run(aclnnLogitGrad, size, executor, stream);
    print(eps < 0 ? "without eps" : "eps 0.05", to_host(out, 6));
  }

  for (const DeviceTensor& each : {x, dy, out}) destroy(each);
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
