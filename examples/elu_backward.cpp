// SPDX-License-Identifier: Apache-2.0
// aclnnEluBackward from the input of Elu, and once more from its result: the same gradient.
//
//   openaclnn cc elu_backward.cpp -o elu_backward && ./elu_backward
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_elu_backward.h"

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

static aclScalar* to_scalar(float value) { return aclCreateScalar(&value, ACL_FLOAT); }

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

  const std::vector<int64_t> shape = {2, 3};
  const std::vector<float> x = {-2, -0.5f, -0.125f, 0, 0.5f, 3};
  std::vector<float> elu;  // what Elu with alpha 1.5 and scale 2 made of x
  for (float v : x) elu.push_back(2 * (v > 0 ? v : 1.5f * static_cast<float>(std::expm1(v))));
  DeviceTensor grad_output = to_device({1, 2, 3, 4, 5, 6}, shape);
  DeviceTensor input = to_device(x, shape), result = to_device(elu, shape);
  DeviceTensor grad_input = to_device(std::vector<float>(6), shape);
  aclScalar *alpha = to_scalar(1.5f), *scale = to_scalar(2), *input_scale = to_scalar(1);

  for (bool is_result : {false, true}) {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    CHECK(aclnnEluBackwardGetWorkspaceSize(grad_output.tensor, alpha, scale, input_scale, is_result,
                                           is_result ? result.tensor : input.tensor,
                                           grad_input.tensor, &size, &executor));
    run(aclnnEluBackward, size, executor, stream);
    print(is_result ? "from the result" : "from the input", to_host(grad_input, 6));
  }

  for (const DeviceTensor& each : {grad_output, input, result, grad_input}) destroy(each);
  for (const aclScalar* each : {alpha, scale, input_scale}) CHECK(aclDestroyScalar(each));
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
