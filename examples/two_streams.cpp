// SPDX-License-Identifier: Apache-2.0
// Two streams and events: one stream waits for the other, and the time is measured.
//
//   openaclnn cc two_streams.cpp -o two_streams && ./two_streams
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_ops_nn.h"

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

static aclScalar* to_scalar(float value) { return aclCreateScalar(&value, ACL_FLOAT); }

int main() {
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(0));
  aclrtStream first = nullptr, second = nullptr;
  CHECK(aclrtCreateStream(&first));
  CHECK(aclrtCreateStream(&second));
  aclrtEvent start = nullptr, halfway = nullptr, end = nullptr;
  for (aclrtEvent* event : {&start, &halfway, &end}) CHECK(aclrtCreateEvent(event));

  // x = i / n - 1 in [-1, 1); y = leakyrelu(x, 0.5); z = hardshrink(y, 0.25)
  const int64_t n = 1 << 16;
  std::vector<float> ramp(2 * n);
  for (int64_t i = 0; i < 2 * n; ++i) ramp[i] = static_cast<float>(i) / n - 1;
  DeviceTensor x = to_device(ramp, {2 * n});
  DeviceTensor y = to_device(std::vector<float>(2 * n), {2 * n});
  DeviceTensor z = to_device(std::vector<float>(2 * n), {2 * n});
  aclScalar *slope = to_scalar(0.5f), *lambd = to_scalar(0.25f);

  uint64_t relu_size = 0, shrink_size = 0;
  aclOpExecutor *relu = nullptr, *shrink = nullptr;
  CHECK(aclnnLeakyReluGetWorkspaceSize(x.tensor, slope, y.tensor, &relu_size, &relu));
  CHECK(aclnnHardshrinkGetWorkspaceSize(y.tensor, lambd, z.tensor, &shrink_size, &shrink));
  void *relu_workspace = nullptr, *shrink_workspace = nullptr;
  if (relu_size > 0) CHECK(aclrtMalloc(&relu_workspace, relu_size, ACL_MEM_MALLOC_HUGE_FIRST));
  if (shrink_size > 0)
    CHECK(aclrtMalloc(&shrink_workspace, shrink_size, ACL_MEM_MALLOC_HUGE_FIRST));

  // The host only hands out work; the second stream waits for the first by itself.
  CHECK(aclrtRecordEvent(start, first));
  CHECK(aclnnLeakyRelu(relu_workspace, relu_size, relu, first));
  CHECK(aclrtRecordEvent(halfway, first));
  CHECK(aclrtStreamWaitEvent(second, halfway));
  CHECK(aclnnHardshrink(shrink_workspace, shrink_size, shrink, second));
  CHECK(aclrtRecordEvent(end, second));
  CHECK(aclrtSynchronizeEvent(end));

  float milliseconds = -1;
  CHECK(aclrtEventElapsedTime(&milliseconds, start, end));
  std::printf("time is taken: %s\n", milliseconds >= 0 ? "yes" : "no");
  const std::vector<float> result = to_host(z, 2 * n);
  for (int64_t i = 0; i < 2 * n; i += n / 4) std::printf("z(%g) = %g\n", ramp[i], result[i]);

  for (const DeviceTensor& each : {x, y, z}) destroy(each);
  for (void* workspace : {relu_workspace, shrink_workspace}) {
    if (workspace != nullptr) CHECK(aclrtFree(workspace));
  }
  for (const aclScalar* each : {slope, lambd}) CHECK(aclDestroyScalar(each));
  for (aclrtEvent event : {start, halfway, end}) CHECK(aclrtDestroyEvent(event));
  for (aclrtStream stream : {first, second}) CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
