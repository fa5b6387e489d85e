// SPDX-License-Identifier: Apache-2.0
// The style of the operator pages: enumerators with their type's name, printf by way of <iostream>,
// %ld for int64_t, a workspace size that was set before, an executor that was not, a status as exit
// code. The first word, if any, spoils a shape.
#include <iostream>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_logit_grad.h"

#define LOG_PRINT(message, ...)     \
  do {                              \
    printf(message, ##__VA_ARGS__); \
  } while (0)
#define CHECK_RET(cond, return_expr) \
  do {                               \
    if (!(cond)) {                   \
      return_expr;                   \
    }                                \
  } while (0)

int64_t ElementsOf(const std::vector<int64_t>& shape) {
  int64_t elements = 1;
  for (auto dim : shape) elements *= dim;
  return elements;
}

template <typename T>
int MakeTensor(const std::vector<T>& host, const std::vector<int64_t>& shape, void** device,
               aclDataType type, aclTensor** tensor) {
  auto bytes = ElementsOf(shape) * sizeof(T);
  auto ret = aclrtMalloc(device, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtMalloc failed: %d\n", ret); return ret);
  ret = aclrtMemcpy(*device, bytes, host.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtMemcpy failed: %d\n", ret); return ret);
  std::vector<int64_t> strides(shape.size(), 1);
  for (int64_t i = static_cast<int64_t>(shape.size()) - 2; i >= 0; i--) {
    strides[i] = shape[i + 1] * strides[i + 1];
  }
  *tensor = aclCreateTensor(shape.data(), shape.size(), type, strides.data(), 0,
                            aclFormat::ACL_FORMAT_ND, shape.data(), shape.size(), *device);
  return 0;
}

int main(int argc, char**) {
  int32_t deviceId = 0;
  aclrtStream stream;
  auto ret = aclInit(nullptr);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclInit failed: %d\n", ret); return ret);
  ret = aclrtSetDevice(deviceId);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtSetDevice failed: %d\n", ret); return ret);
  ret = aclrtCreateStream(&stream);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtCreateStream failed: %d\n", ret); return ret);

  std::vector<int64_t> xShape = {2, 2};
  std::vector<int64_t> outShape = argc > 1 ? std::vector<int64_t>{4} : xShape;
  void *xAddr = nullptr, *dyAddr = nullptr, *outAddr = nullptr;
  aclTensor *x = nullptr, *dy = nullptr, *out = nullptr;
  std::vector<float> ones(4, 1.0f), zeros(4, 0.0f);
  ret = MakeTensor<float>({0.5f, 0.25f, 0.75f, 0.125f}, xShape, &xAddr, aclDataType::ACL_FLOAT, &x);
  CHECK_RET(ret == ACL_SUCCESS, return ret);
  ret = MakeTensor(ones, xShape, &dyAddr, aclDataType::ACL_FLOAT, &dy);
  CHECK_RET(ret == ACL_SUCCESS, return ret);
  ret = MakeTensor(zeros, outShape, &outAddr, aclDataType::ACL_FLOAT, &out);
  CHECK_RET(ret == ACL_SUCCESS, return ret);

  uint64_t workspaceSize = 16 * 1024 * 1024;
  aclOpExecutor* executor;
  ret = aclnnLogitGradGetWorkspaceSize(x, dy, -1.0, out, &workspaceSize, &executor);
  CHECK_RET(ret == ACL_SUCCESS,
            LOG_PRINT("aclnnLogitGradGetWorkspaceSize failed: %d\n%s\n", ret, aclGetRecentErrMsg());
            return ret);
  void* workspaceAddr = nullptr;
  if (workspaceSize > 0) {
    ret = aclrtMalloc(&workspaceAddr, workspaceSize, ACL_MEM_MALLOC_HUGE_FIRST);
    CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("no workspace: %d\n", ret); return ret);
  }
  ret = aclnnLogitGrad(workspaceAddr, workspaceSize, executor, stream);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclnnLogitGrad failed: %d\n", ret); return ret);
  ret = aclrtSynchronizeStream(stream);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("aclrtSynchronizeStream failed: %d\n", ret); return ret);

  auto size = ElementsOf(outShape);
  std::vector<float> result(size, 0);
  ret = aclrtMemcpy(result.data(), result.size() * sizeof(result[0]), outAddr, size * sizeof(float),
                    ACL_MEMCPY_DEVICE_TO_HOST);
  CHECK_RET(ret == ACL_SUCCESS, LOG_PRINT("copy back failed: %d\n", ret); return ret);
  for (int64_t i = 0; i < size; i++) {
    LOG_PRINT("result[%ld] is: %f\n", i, result[i]);
  }

  aclDestroyTensor(x);
  aclDestroyTensor(dy);
  aclDestroyTensor(out);
  aclrtFree(xAddr);
  aclrtFree(dyAddr);
  aclrtFree(outAddr);
  if (workspaceSize > 0) {
    aclrtFree(workspaceAddr);
  }
  aclrtDestroyStream(stream);
  aclrtResetDevice(deviceId);
  aclFinalize();
  return 0;
}
