// SPDX-License-Identifier: Apache-2.0
// Calls that are refused, and workspaces that do not fit; the argument names one.
// tests/check/test_cases.py knows what is reported for each.
#include <pthread.h>

#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "../../examples/mistakes/mistake.h"

namespace {

// Runs both phases and ignores their statuses.
void careless_leaky_relu(int64_t length, aclDataType dtype, bool exchange) {
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x),
            *out = aclCreateTensor(&length, 1, dtype, nullptr, 0, ACL_FORMAT_ND, &length, 1, y);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor);
  if (exchange) {
    aclnnGroupNormSwishGrad(nullptr, size, executor, nullptr);
    must(aclDestroyAclOpExecutor(executor));
  } else {
    aclnnLeakyRelu(nullptr, size, executor, nullptr);
  }
  must(aclrtSynchronizeStream(nullptr));
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
}

void refused_shape() {
  for (int i = 0; i < 3; ++i) careless_leaky_relu(kLength / 2, ACL_FLOAT, false);
}

void refused_dtype() { careless_leaky_relu(kLength, ACL_INT32, false); }

void executor_of_another_operator() { careless_leaky_relu(kLength, ACL_FLOAT, true); }

// Refused once, then run, and never destroyed.
void run_after_a_refusal() {
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  must(aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor));
  must(aclSetAclOpExecutorRepeatable(executor));
  aclnnGroupNormSwishGrad(nullptr, size, executor, nullptr);
  must(aclnnLeakyRelu(nullptr, size, executor, nullptr));
  must(aclrtSynchronizeStream(nullptr));
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
}

void refused_objects() {
  (void)aclCreateScalar(nullptr, ACL_FLOAT);
  (void)aclCreateTensor(nullptr, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 1, nullptr);
  (void)aclCreateIntArray(nullptr, 3);
}

void refused_runtime() {
  float* x = device_memory(kBytes);
  aclrtMemcpyAsync(x, kBytes, nullptr, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, nullptr);
  aclrtSetDevice(99);
  must(aclrtFree(x));
}

void answers_that_are_no_mistakes() {
  aclrtContext context = nullptr;
  int32_t device = 0;
  int64_t option = 0;
  std::thread([&] {
    if (aclrtGetCurrentContext(&context) == 0 || aclrtGetDevice(&device) == 0) std::exit(1);
  }).join();
  if (aclInit(nullptr) != ACL_ERROR_REPEAT_INITIALIZE) std::exit(2);
  if (aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &option) == 0) std::exit(3);
  if (aclrtProcessReport(1) != ACL_ERROR_THREAD_NOT_SUBSCRIBE) std::exit(4);
  aclrtStream stream = make_stream();
  must(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), stream));
  if (aclrtProcessReport(1) != ACL_ERROR_WAIT_CALLBACK_TIMEOUT) std::exit(5);
  must(aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_BLOCK, stream));
  if (aclrtSynchronizeStreamWithTimeout(stream, 1) == 0) std::exit(6);
  must(aclrtProcessReport(1000));
  must(aclrtSynchronizeStream(stream));
  must(aclrtUnSubscribeReport(static_cast<uint64_t>(pthread_self()), stream));
  must(aclrtDestroyStream(stream));
}

void makers_of_nothing() {  // not what an earlier refusal left NULL
  aclrtCreateStream(nullptr);
  aclrtCreateStreamWithConfig(nullptr, 0, 0);
  aclrtStream stream = nullptr;
  aclrtDestroyStream(stream);
}

void reset_twice() {
  must(aclrtSetDevice(0));
  must(aclrtResetDevice(0));
  must(aclrtResetDevice(0));
  aclrtResetDevice(0);
  must(aclrtSetDevice(0));
}

// ---- workspaces ----

void workspace_with(size_t allocated, size_t promised) {
  GroupNormSwishGrad op;
  float* workspace = allocated == 0 ? nullptr : device_memory(allocated);
  if (aclnnGroupNormSwishGrad(workspace, promised, op.executor, nullptr) != 0) {
    must(aclDestroyAclOpExecutor(op.executor));
  }
  must(aclrtSynchronizeStream(nullptr));
  if (workspace != nullptr) must(aclrtFree(workspace));
}

void left_after_a_refused_phase_2() {  // one mistake
  GroupNormSwishGrad op;
  (void)aclnnGroupNormSwishGrad(nullptr, 0, op.executor, nullptr);
}

void no_workspace() { workspace_with(0, 0); }
void workspace_promised_too_much() { workspace_with(256, 512); }
void workspace_one_byte_short() { workspace_with(255, 256); }
void workspace_larger_than_needed() { workspace_with(512, 300); }

const std::map<std::string, void (*)()> cases = {
    {"reset_twice", reset_twice},
    {"makers_of_nothing", makers_of_nothing},
    {"refused_shape", refused_shape},
    {"refused_dtype", refused_dtype},
    {"executor_of_another_operator", executor_of_another_operator},
    {"run_after_a_refusal", run_after_a_refusal},
    {"refused_objects", refused_objects},
    {"refused_runtime", refused_runtime},
    {"answers_that_are_no_mistakes", answers_that_are_no_mistakes},
    {"left_after_a_refused_phase_2", left_after_a_refused_phase_2},
    {"no_workspace", no_workspace},
    {"workspace_promised_too_much", workspace_promised_too_much},
    {"workspace_one_byte_short", workspace_one_byte_short},
    {"workspace_larger_than_needed", workspace_larger_than_needed},
};

}  // namespace

int main(int, char** words) {
  begin();
  if (words[2] != nullptr) (void)device_memory(kBytes);
  cases.at(words[1])();
  end();
  return 0;
}
