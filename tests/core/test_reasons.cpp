// SPDX-License-Identifier: Apache-2.0
// Every kind of refusal carries its reason, its subject and the call, whatever its sentence says.
#include <thread>

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"
#include "core/support/status.h"

using openaclnn::Cause;
using openaclnn::ObjectKind;
using openaclnn::Reason;

namespace {

void check_failure(int line, int32_t code, Reason reason, ObjectKind subject, const char* call) {
  const openaclnn::TakenFailure failure = openaclnn::take_failure(code);
  const auto number = [](auto value) { return static_cast<int>(value); };
  check_equal(__FILE__, line, "reason", number(failure.cause.reason), number(reason));
  check_equal(__FILE__, line, "subject", number(failure.cause.subject), number(subject));
  check_equal(__FILE__, line, "call", failure.call, std::string(call));
  if (failure.sentence.empty()) check_fail(__FILE__, line, "no sentence");
}

#define CHECK_CAUSE(x, code, reason, subject, call) \
  (CHECK_EQ(x, code), check_failure(__LINE__, code, Reason::reason, ObjectKind::subject, call))

void of_the_runtime() {
  void* memory = nullptr;
  aclrtStream stream = nullptr;
  aclrtEvent event = nullptr;
  CHECK_CAUSE(aclrtMalloc(&memory, 8, ACL_MEM_MALLOC_HUGE_FIRST), 107002, no_context, device,
              "aclrtMalloc");
  CHECK_CAUSE(aclrtSynchronizeStream(nullptr), 107002, no_context, device,
              "aclrtSynchronizeStream");
  CHECK_CAUSE(aclrtResetDevice(0), 107000, call_missing, device, "aclrtResetDevice");
  CHECK_CAUSE(aclrtSetDevice(9999), 107001, wrong_value, device, "aclrtSetDevice");
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_CAUSE(aclrtMalloc(nullptr, 8, ACL_MEM_MALLOC_HUGE_FIRST), 100000, null_argument, none,
              "aclrtMalloc");
  CHECK_CAUSE(aclrtMalloc(&memory, SIZE_MAX / 2, ACL_MEM_MALLOC_HUGE_FIRST), 207001, out_of_memory,
              none, "aclrtMalloc");
  CHECK_CAUSE(aclrtFree(nullptr), 100000, null_argument, device_memory, "aclrtFree");
  CHECK_CAUSE(aclrtMemcpy(nullptr, 8, &memory, 8, ACL_MEMCPY_HOST_TO_HOST), 100000, null_argument,
              device_memory, "aclrtMemcpy");
  CHECK_CAUSE(aclrtMemcpy(&event, 4, &memory, 8, ACL_MEMCPY_HOST_TO_HOST), 107000, wrong_memory,
              none, "aclrtMemcpy");
  CHECK_CAUSE(aclrtDestroyStream(nullptr), 100000, null_argument, stream, "aclrtDestroyStream");
  CHECK_CAUSE(aclrtRecordEvent(nullptr, nullptr), 100000, null_argument, event, "aclrtRecordEvent");
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_CAUSE(aclrtSynchronizeStream(stream), 107017, dead_handle, stream,
              "aclrtSynchronizeStream");
  CHECK_CAUSE(aclInit("/nowhere/acl.json"), 100003, wrong_value, none, "aclInit");
  CHECK_CAUSE(aclFinalize(), 100037, call_missing, none, "aclFinalize");
}

void of_operators() {
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  const int64_t two = 2, three = 3, stride = 1;
  float data[3] = {};
  float slope = 0.5f;
  const auto made = [&](const int64_t& count, aclDataType dtype, void* address) {
    return aclCreateTensor(&count, 1, dtype, &stride, 0, ACL_FORMAT_ND, &count, 1, address);
  };
  aclTensor* x = made(three, ACL_FLOAT, data);
  aclTensor* y = made(two, ACL_FLOAT, data);
  aclTensor* half = made(three, ACL_INT32, data);
  aclTensor* absent = made(three, ACL_FLOAT, nullptr);
  aclScalar* factor = aclCreateScalar(&slope, ACL_FLOAT);
  constexpr const char* call = "aclnnLeakyRelu";
  const auto plan = [&](aclTensor* self, aclScalar* s, aclTensor* out) {
    return aclnnLeakyReluGetWorkspaceSize(self, s, out, &size, &executor);
  };
  CHECK_CAUSE(plan(nullptr, factor, x), 161001, null_argument, tensor, call);
  CHECK_CAUSE(plan(x, nullptr, x), 161001, null_argument, scalar, call);
  CHECK_CAUSE(plan(x, factor, y), 161002, wrong_shape, none, call);
  CHECK_CAUSE(plan(half, factor, x), 161002, wrong_dtype, none, call);
  CHECK_CAUSE(plan(absent, factor, x), 161001, null_argument, device_memory, call);
  CHECK_CAUSE(aclnnLeakyRelu(nullptr, 0, nullptr, nullptr), 161001, null_argument, executor, call);
  CHECK_EQ(plan(x, factor, x), 0);
  // A failure of the runtime gets the name of the operator, and keeps its cause.
  std::thread([&] {
    CHECK_CAUSE(aclnnLeakyRelu(nullptr, size, executor, nullptr), 361001, no_context, device, call);
  }).join();
  CHECK_EQ(aclnnLeakyRelu(nullptr, size, executor, nullptr), 0);
  CHECK_CAUSE(aclnnLeakyRelu(nullptr, size, executor, nullptr), 161002, dead_handle, executor,
              call);
  CHECK_EQ(aclDestroyTensor(y), 0);
  CHECK_CAUSE(plan(x, factor, y), 161002, dead_handle, tensor, call);
  for (aclTensor* tensor : {x, half, absent}) CHECK_EQ(aclDestroyTensor(tensor), 0);
  CHECK_EQ(aclDestroyScalar(factor), 0);
}

}  // namespace

int main() {
  of_the_runtime();
  of_operators();
  return check_result();
}
