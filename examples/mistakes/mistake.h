// SPDX-License-Identifier: Apache-2.0
// What the programs here share, all of it right: the mistakes are in their main functions.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "acl/acl.h"
#include "aclnnop/aclnn_group_norm_swish_grad.h"
#include "aclnnop/aclnn_leaky_relu.h"

constexpr int64_t kLength = 1000;
constexpr size_t kBytes = kLength * sizeof(float);

inline void must(int status) {
  if (status == ACL_SUCCESS) return;
  std::printf("%d: %s", status, aclGetRecentErrMsg());
  std::exit(1);
}

inline void begin() {
  must(aclInit(nullptr));
  must(aclrtSetDevice(0));
}

inline void end() {
  must(aclrtResetDevice(0));
  must(aclFinalize());
}

inline aclrtStream make_stream() {
  aclrtStream stream = nullptr;
  must(aclrtCreateStream(&stream));
  return stream;
}

inline float* device_memory(size_t bytes) {
  void* memory = nullptr;
  must(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  must(aclrtMemset(memory, bytes, 0, bytes));
  return static_cast<float*>(memory);
}

inline aclTensor* tensor(void* memory, int64_t length = kLength) {
  return aclCreateTensor(&length, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &length, 1, memory);
}

// An operator that needs workspace; owns its memory and tensors.
struct GroupNormSwishGrad {
  GroupNormSwishGrad() {
    const int64_t whole[] = {2, 8, 5, 5}, statistics[] = {2, 2}, channels[] = {8};
    for (int i = 0; i < kTensors; ++i) {
      const bool of_channels = i == 4 || i == 5 || i >= 7, of_groups = i == 1 || i == 2;
      const int64_t* shape = of_channels ? channels : of_groups ? statistics : whole;
      const int rank = of_channels ? 1 : of_groups ? 2 : 4;
      memory[i] = device_memory(2 * 8 * 5 * 5 * sizeof(float));
      tensors[i] = aclCreateTensor(shape, rank, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, rank,
                                   memory[i]);
    }
    char format[] = "NCHW";
    must(aclnnGroupNormSwishGradGetWorkspaceSize(
        tensors[0], tensors[1], tensors[2], tensors[3], tensors[4], tensors[5], 2, format, 1.0,
        true, true, tensors[6], tensors[7], tensors[8], &workspace_size, &executor));
  }
  ~GroupNormSwishGrad() {
    for (int i = 0; i < kTensors; ++i) {
      must(aclDestroyTensor(tensors[i]));
      must(aclrtFree(memory[i]));
    }
  }

  static constexpr int kTensors = 9;  // dy, mean, rstd, x, gamma, beta; dxOut, dgammaOut, dbetaOut
  float* memory[kTensors];
  aclTensor* tensors[kTensors];
  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
};

// out = leaky_relu(self): both phases.
inline void leaky_relu(const aclTensor* self, aclTensor* out, aclrtStream stream) {
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  must(aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor));
  must(aclDestroyScalar(slope));
  must(aclnnLeakyRelu(nullptr, size, executor, stream));
}
