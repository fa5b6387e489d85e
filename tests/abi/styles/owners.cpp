// SPDX-License-Identifier: Apache-2.0
// The style of newer pages: owners with the destroy functions as deleters, bare enumerators, the
// header without its folder, a product asked for by name; owners that outlive aclFinalize.
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "acl/acl.h"
#include "aclnn_elu_backward.h"

using TensorOwner = std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor*)>;
using ScalarOwner = std::unique_ptr<aclScalar, decltype(&aclDestroyScalar)>;
using MemoryOwner = std::unique_ptr<void, aclError (*)(void*)>;

static MemoryOwner late(nullptr, aclrtFree);  // freed when the program ends

static MemoryOwner Allocate(const std::vector<float>& values) {
  void* data = nullptr;
  const size_t bytes = values.size() * sizeof(float);
  if (aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_NORMAL_ONLY) != ACL_SUCCESS) data = nullptr;
  if (data != nullptr) aclrtMemcpy(data, bytes, values.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE);
  return MemoryOwner(data, aclrtFree);
}

static TensorOwner Describe(const MemoryOwner& memory, int64_t length) {
  return TensorOwner(
      aclCreateTensor(&length, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &length, 1, memory.get()),
      aclDestroyTensor);
}

static ScalarOwner Number(float value) {
  return ScalarOwner(aclCreateScalar(&value, ACL_FLOAT), aclDestroyScalar);
}

int main() {
  if (aclInit("") != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
  const char* soc = aclrtGetSocName();
  std::printf("%s\n", soc != nullptr && std::strstr(soc, "Ascend910B") ? "A2" : "another product");
  std::function<aclError(aclrtStream)> synchronize = aclrtSynchronizeStream;
  aclrtStream stream = nullptr;
  if (aclrtCreateStream(&stream) != ACL_SUCCESS) return 1;

  MemoryOwner g = Allocate({1, 2, 3}), v = Allocate({-1, 0, 2});
  late = Allocate({0, 0, 0});
  TensorOwner grad = Describe(g, 3), value = Describe(v, 3), out = Describe(late, 3);
  ScalarOwner alpha = Number(2), scale = Number(1), inputScale = Number(1);
  uint64_t workspaceSize = 0;
  aclOpExecutor* executor = nullptr;
  aclnnStatus status =
      aclnnEluBackwardGetWorkspaceSize(grad.get(), alpha.get(), scale.get(), inputScale.get(), true,
                                       value.get(), out.get(), &workspaceSize, &executor);
  switch (status) {
    case ACLNN_SUCCESS: break;
    case ACLNN_ERR_PARAM_NULLPTR:
    case ACLNN_ERR_PARAM_INVALID: return status;
    default: return 2;
  }
  MemoryOwner workspace(nullptr, aclrtFree);
  status = aclnnEluBackward(workspace.get(), workspaceSize, executor, stream);
  if (status != OK || synchronize(stream) != ACL_ERROR_NONE) return 3;
  float result[3];
  aclrtMemcpy(result, sizeof result, late.get(), sizeof result, ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("%g %g %g\n", result[0], result[1], result[2]);

  aclrtDestroyStream(stream);
  aclrtResetDeviceForce(0);
  return aclFinalize();  // owners go after this
}
