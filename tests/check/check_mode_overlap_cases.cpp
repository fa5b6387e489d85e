// SPDX-License-Identifier: Apache-2.0
// Tensors that overlap because an allocation is too small; the argument names the case.
// tests/check/test_cases.py knows what is reported for each.
#include <map>
#include <string>

#include "../../examples/mistakes/mistake.h"

namespace {

constexpr int64_t kMany = 100'000;  // from one allocation into the next
constexpr size_t kManyBytes = kMany * sizeof(float);

struct Call {
  Call(void* x, void* y) : self(tensor(x, kMany)), out(tensor(y, kMany)) {
    float value = 0.5f;
    slope = aclCreateScalar(&value, ACL_FLOAT);
  }
  ~Call() {
    must(aclDestroyScalar(slope));
    must(aclDestroyTensor(self));
    must(aclDestroyTensor(out));
  }
  Call(const Call&) = delete;

  int plan() { return aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor); }

  aclTensor *self, *out;
  aclScalar* slope = nullptr;
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
};

void output_allocated_too_small() {
  float* y = device_memory(kBytes);
  float* x = device_memory(kManyBytes);
  (void)Call(x, y).plan();
  must(aclrtFree(x));
  must(aclrtFree(y));
}

void set_output_allocated_too_small() {
  float *small = device_memory(kBytes), *x = device_memory(kManyBytes);
  float* y = device_memory(kManyBytes);
  {
    Call call(x, y);
    must(call.plan());
    must(aclSetAclOpExecutorRepeatable(call.executor));
    must(aclSetOutputTensorAddr(call.executor, 0, call.out, small));
    (void)aclnnLeakyRelu(nullptr, call.size, call.executor, nullptr);
    must(aclDestroyAclOpExecutor(call.executor));
  }
  for (float* memory : {small, x, y}) must(aclrtFree(memory));
}

const std::map<std::string, void (*)()> cases = {
    {"output_allocated_too_small", output_allocated_too_small},
    {"set_output_allocated_too_small", set_output_allocated_too_small},
};

}  // namespace

int main(int, char** words) {
  begin();
  cases.at(words[1])();
  end();
  return 0;
}
