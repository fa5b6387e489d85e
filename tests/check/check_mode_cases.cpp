// SPDX-License-Identifier: Apache-2.0
// Makes one of the less usual mistakes; the argument names it. tests/check/test_cases.py knows
// what is reported for each.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "../../examples/mistakes/mistake.h"

namespace {

void read_behind() {
  volatile float* x = device_memory(kBytes);
  (void)x[kLength + 3];
}

void read_after_free() {
  volatile float* x = device_memory(kBytes);
  must(aclrtFree(const_cast<float*>(x)));
  (void)x[0];
}

void read_in_libc() {
  char text[8];
  std::memcpy(text, device_memory(kBytes), sizeof text);
  std::puts(text);
}

void write_in_thread() {
  float* x = device_memory(kBytes);
  std::thread([x] { x[0] = 1; }).join();
}

void crash_of_its_own() {
  signal(SIGSEGV, SIG_DFL);
  volatile int* nowhere = nullptr;
  *nowhere = 1;
}

void crash() {
  volatile int* nowhere = nullptr;
  *nowhere = 1;
}

void told_once() {
  float* x = device_memory(kBytes);
  float y[kLength];
  for (int i = 0; i < 5; ++i) {
    must(aclrtMemcpy(y, kBytes, x, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  must(aclrtFree(x));
}

float* freed_at_exit = nullptr;

void double_free_at_exit() {
  freed_at_exit = device_memory(kBytes);
  must(aclrtFree(freed_at_exit));
  std::atexit([] { aclrtFree(freed_at_exit); });
}

void free_inside() {
  float* x = device_memory(kBytes);
  aclrtFree(x + 8);
  must(aclrtFree(x));
}

void free_pinned_in_use() {
  aclrtStream stream = make_stream();
  float* x = device_memory(kBytes);
  void* pinned = nullptr;
  must(aclrtMallocHost(&pinned, kBytes));
  must(aclrtMemcpyAsync(pinned, kBytes, x, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  must(aclrtFreeHost(pinned));
  must(aclrtDestroyStream(stream));
  must(aclrtFree(x));
}

void leaks() {
  void* pinned = nullptr;
  for (int i = 0; i < 2; ++i) must(aclrtMallocHost(&pinned, kBytes));
  for (int i = 0; i < 3; ++i) (void)device_memory(kBytes);
  for (int i = 0; i < 2; ++i) (void)make_stream();
}

void workspace_in_an_operand() {
  GroupNormSwishGrad op;
  must(aclnnGroupNormSwishGrad(op.memory[3], op.workspace_size, op.executor, nullptr));
  must(aclrtSynchronizeStream(nullptr));
}

void workspace_size_too_small() {
  GroupNormSwishGrad op;
  float* workspace = device_memory(op.workspace_size);
  aclnnGroupNormSwishGrad(workspace, op.workspace_size - 1, op.executor, nullptr);
  must(aclDestroyAclOpExecutor(op.executor));
  must(aclrtFree(workspace));
}

void freed_address_set() {
  float *x = device_memory(kBytes), *y = device_memory(kBytes), *old = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  must(aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor));
  must(aclSetAclOpExecutorRepeatable(executor));
  must(aclnnLeakyRelu(nullptr, size, executor, nullptr));
  must(aclrtSynchronizeStream(nullptr));
  must(aclrtFree(old));
  must(aclSetInputTensorAddr(executor, 0, self, old));
  aclnnLeakyRelu(nullptr, size, executor, nullptr);
  must(aclDestroyAclOpExecutor(executor));
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
}

void member_of_a_list() {
  float* x = device_memory(kBytes);
  aclTensor* self = tensor(x);
  aclTensorList* list = aclCreateTensorList(&self, 1);
  must(aclDestroyTensorList(list));
  aclDestroyTensor(self);
  must(aclrtFree(x));
}

void event_destroyed() {
  aclrtEvent event = nullptr;
  must(aclrtCreateEvent(&event));
  must(aclrtDestroyEvent(event));
  aclrtRecordEvent(event, nullptr);
}

void event_of_another_stream() {  // the order it gives is not the one that is needed
  aclrtStream a = make_stream(), b = make_stream();
  aclrtEvent event = nullptr;
  must(aclrtCreateEvent(&event));
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y);
  must(aclrtRecordEvent(event, a));
  leaky_relu(self, out, a);
  must(aclrtStreamWaitEvent(b, event));
  must(aclrtMemsetAsync(y, kBytes, 0, kBytes, b));
  must(aclrtSynchronizeDevice());
  must(aclrtDestroyEvent(event));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtDestroyStream(a));
  must(aclrtDestroyStream(b));
}

void fork_and_free_twice() {
  float* x = device_memory(kBytes);
  must(aclrtMemset(x, kBytes, 1, kBytes));
  const pid_t child = fork();
  if (child == 0) {
    must(aclrtMemset(x, kBytes, 2, kBytes));  // of the child alone
    must(aclrtFree(x));
    aclrtFree(x);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("the child ended with %d\n", WEXITSTATUS(status));
  unsigned char bytes[kBytes];
  must(aclrtMemcpy(bytes, kBytes, x, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  std::printf("the parent has %d\n", bytes[0]);
  must(aclrtFree(x));
}

void sent_signal() {
  raise(SIGSEGV);
  std::exit(3);  // not reached
}

void ignored_signal() {
  signal(SIGSEGV, SIG_IGN);
  raise(SIGSEGV);
}

void no_finalise() {
  (void)device_memory(kBytes);
  std::exit(0);
}

void handles_of_other_kinds() {
  aclrtEvent event = nullptr;
  must(aclrtCreateEvent(&event));
  aclrtSynchronizeStream(event);
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x), *out = tensor(y);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  must(aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor));
  aclnnLeakyRelu(nullptr, size, executor, event);
  must(aclDestroyAclOpExecutor(executor));
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  aclrtSynchronizeStream(x);
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtDestroyEvent(event));
}

void one_missing_synchronisation() {
  aclrtStream stream = make_stream();
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  float result[kLength];
  aclTensor *self = tensor(x), *out = tensor(y);
  leaky_relu(self, out, stream);
  must(aclrtMemcpy(result, kBytes, y, kBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtDestroyStream(stream));
}

void leaks_on_one_line() {
  float* x = device_memory(kBytes);
  (void)tensor(x, 10), (void)tensor(x, 20);
  must(aclrtFree(x));
}

void free_foreign() {
  float x[8];
  aclrtFree(x);
}

const std::map<std::string, void (*)()> cases = {
    {"read_behind", read_behind},
    {"read_after_free", read_after_free},
    {"read_in_libc", read_in_libc},
    {"write_in_thread", write_in_thread},
    {"crash", crash},
    {"crash_of_its_own", crash_of_its_own},
    {"told_once", told_once},
    {"double_free_at_exit", double_free_at_exit},
    {"free_inside", free_inside},
    {"free_pinned_in_use", free_pinned_in_use},
    {"leaks", leaks},
    {"workspace_in_an_operand", workspace_in_an_operand},
    {"workspace_size_too_small", workspace_size_too_small},
    {"freed_address_set", freed_address_set},
    {"member_of_a_list", member_of_a_list},
    {"event_destroyed", event_destroyed},
    {"event_of_another_stream", event_of_another_stream},
    {"fork_and_free_twice", fork_and_free_twice},
    {"sent_signal", sent_signal},
    {"ignored_signal", ignored_signal},
    {"no_finalise", no_finalise},
    {"handles_of_other_kinds", handles_of_other_kinds},
    {"one_missing_synchronisation", one_missing_synchronisation},
    {"leaks_on_one_line", leaks_on_one_line},
    {"free_foreign", free_foreign},
};

}  // namespace

int main(int, char** words) {
  begin();
  if (words[2] != nullptr) (void)device_memory(kBytes);
  cases.at(words[1])();
  end();
  return 0;
}
