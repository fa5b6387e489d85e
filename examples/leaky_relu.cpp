// SPDX-License-Identifier: Apache-2.0
// aclnnLeakyRelu from first to last call, in the shape of an ordinary aclnn program.
//
//   source $(openaclnn home)/set_env.sh; H=$ASCEND_HOME_PATH
//   g++ leaky_relu.cpp -I$H/include -I$H/include/aclnn -I$H/include/aclnnop -L$H/lib64
//       -lopapi_nn -lopapi_math -lascendcl -lnnopbase -o leaky_relu          (all on one line)
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

// Host values to device memory, and the tensor that describes them: contiguous, all of its storage.
static aclTensor* to_device(const std::vector<float>& values, const std::vector<int64_t>& shape,
                            void** device) {
  const size_t bytes = values.size() * sizeof(float);
  CHECK(aclrtMalloc(device, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(*device, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * shape[i];
  return aclCreateTensor(shape.data(), shape.size(), ACL_FLOAT, strides.data(), 0, ACL_FORMAT_ND,
                         shape.data(), shape.size(), *device);
}

int main() {
  // 1. Device and stream.
  const int32_t device = 0;
  aclrtStream stream = nullptr;
  CHECK(aclInit(nullptr));
  CHECK(aclrtSetDevice(device));
  CHECK(aclrtCreateStream(&stream));

  // 2. Tensors and attributes.
  const std::vector<int64_t> shape = {4, 2};
  std::vector<float> result(8, 0.0f);
  void* self_device = nullptr;
  void* out_device = nullptr;
  aclTensor* self = to_device({-3, -2, -1, 0, 1, 2, 3, 4}, shape, &self_device);
  aclTensor* out = to_device(result, shape, &out_device);
  float slope = 0.1f;
  aclScalar* negative_slope = aclCreateScalar(&slope, ACL_FLOAT);

  // 3. Phase 1 checks the arguments and plans the work; phase 2 puts it on the stream.
  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnLeakyReluGetWorkspaceSize(self, negative_slope, out, &workspace_size, &executor));
  void* workspace = nullptr;
  if (workspace_size > 0) CHECK(aclrtMalloc(&workspace, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclnnLeakyRelu(workspace, workspace_size, executor, stream));
  CHECK(aclrtSynchronizeStream(stream));

  // 4. The results, back on the host.
  const size_t bytes = result.size() * sizeof(float);
  CHECK(aclrtMemcpy(result.data(), bytes, out_device, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
  for (size_t i = 0; i < result.size(); ++i) std::printf("result[%zu] = %g\n", i, result[i]);

  // 5. Everything in reverse.
  aclDestroyTensor(self);
  aclDestroyTensor(out);
  aclDestroyScalar(negative_slope);
  aclrtFree(self_device);
  aclrtFree(out_device);
  if (workspace != nullptr) aclrtFree(workspace);
  CHECK(aclrtDestroyStream(stream));
  CHECK(aclrtResetDevice(device));
  CHECK(aclFinalize());
  return 0;
}
