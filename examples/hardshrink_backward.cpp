// SPDX-License-Identifier: Apache-2.0
// aclnnHardshrinkBackward of a row for every row of the gradient: inputs broadcast where they are.
//
//   openaclnn cc hardshrink_backward.cpp -o hardshrink_backward && ./hardshrink_backward
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_hardshrink_backward.h"

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

  DeviceTensor grad_output = to_device({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4});
  DeviceTensor self = to_device({-2, 0.5f, 0.25f, 0.75f}, {4});
  DeviceTensor grad_input = to_device(std::vector<float>(8), {2, 4});
  float threshold = 0.5f;
  aclScalar* lambd = aclCreateScalar(&threshold, ACL_FLOAT);

  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnHardshrinkBackwardGetWorkspaceSize(grad_output.tensor, self.tensor, lambd,
                                                grad_input.tensor, &size, &executor));
  run(aclnnHardshrinkBackward, size, executor, stream);
  print("gradInput", to_host(grad_input, 8));

  for (const DeviceTensor& each : {grad_output, self, grad_input}) destroy(each);
  CHECK(aclDestroyScalar(lambd));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
