// SPDX-License-Identifier: Apache-2.0
// Mistakes in less usual ways; the word that names one is the argument. tests/test_check_mode.py
// knows what each is told.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

#include "../examples/mistakes/mistake.h"

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

// Both phases, of which nobody looks at the answers.
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

// ---- values ----

float* unwritten(size_t bytes = kBytes) {
  void* memory = nullptr;
  must(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  return static_cast<float*>(memory);
}

// Every `step`th element of kLength.
aclTensor* every(int64_t step, void* memory) {
  const int64_t length = kLength / step, storage = kLength;
  return aclCreateTensor(&length, 1, ACL_FLOAT, &step, 0, ACL_FORMAT_ND, &storage, 1, memory);
}

// out = leaky_relu(self) on the default stream, which is synchronised.
void run(aclTensor* self, aclTensor* out) {
  leaky_relu(self, out, nullptr);
  must(aclrtSynchronizeStream(nullptr));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
}

void copy_back(const float* x, size_t bytes = kBytes) {
  float result[kLength];
  must(aclrtMemcpy(result, bytes, x, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
}

void copied_back_uncomputed() {
  float* y = unwritten();
  for (int i = 0; i < 3; ++i) copy_back(y);
  must(aclrtFree(y));
}

void half_computed() {
  float *x = device_memory(kBytes), *y = unwritten();
  run(tensor(x, kLength / 2), tensor(y, kLength / 2));
  copy_back(y);
  must(aclrtFree(x));
  must(aclrtFree(y));
}

void gaps_read() {
  float *x = device_memory(kBytes), *y = unwritten(), *z = unwritten();
  run(tensor(x, kLength / 2), every(2, y));
  run(tensor(y), tensor(z));
  copy_back(z);
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtFree(z));
}

void carried_by_a_copy() {
  float *x = unwritten(), *y = unwritten(), *z = unwritten();
  must(aclrtMemcpy(y, kBytes, x, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE));
  run(tensor(y), tensor(z));
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtFree(z));
}

void result_of_a_refused_call() {
  float *x = device_memory(kBytes), *y = unwritten();
  aclTensor *self = tensor(x), *out = tensor(y, kLength / 2);
  float value = 0.5f;
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  aclnnLeakyReluGetWorkspaceSize(self, slope, out, &size, &executor);
  aclnnLeakyRelu(nullptr, size, executor, nullptr);
  copy_back(y);
  must(aclDestroyScalar(slope));
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
}

// What is written with gaps, or in a callback that runs after the submission, is no mistake.
void gaps_copied_back() {
  float *x = device_memory(kBytes), *y = unwritten(), *z = unwritten();
  run(tensor(x, kLength / 2), every(2, y));
  copy_back(y);
  run(every(2, y), tensor(z, kLength / 2));
  copy_back(z, kBytes / 2);
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtFree(z));
}

void gaps_of_broadcast_views() {  // columns 0 and 3 are read, 1 is written
  aclrtStream a = make_stream(), b = make_stream();
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  const int64_t shape[] = {4, 2}, broadcast[] = {0, 3}, one[] = {1, 1}, storage = kLength;
  aclTensor *self =
                aclCreateTensor(shape, 2, ACL_FLOAT, broadcast, 0, ACL_FORMAT_ND, &storage, 1, x),
            *out = tensor(y, 8),
            *flat = aclCreateTensor(one, 2, ACL_FLOAT, nullptr, 1, ACL_FORMAT_ND, &storage, 1, x),
            *other = aclCreateTensor(one, 2, ACL_FLOAT, nullptr, 20, ACL_FORMAT_ND, &storage, 1, y);
  must(aclDestroyTensor(out));
  out = aclCreateTensor(shape, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &storage, 1, y);
  leaky_relu(self, out, a);
  leaky_relu(other, flat, b);
  must(aclrtSynchronizeDevice());
  for (aclTensor* each : {self, out, flat, other}) must(aclDestroyTensor(each));
  must(aclrtDestroyStream(a));
  must(aclrtDestroyStream(b));
  must(aclrtFree(x));
  must(aclrtFree(y));
}

void written_in_a_callback() {
  static float *x, input[kLength];
  x = unwritten();
  float* y = unwritten();
  aclrtStream stream = make_stream();
  const auto self = static_cast<uint64_t>(pthread_self());
  must(aclrtSubscribeReport(self, stream));
  const auto copy = [](void*) {
    must(aclrtMemcpy(x, kBytes, input, kBytes, ACL_MEMCPY_HOST_TO_DEVICE));
  };
  must(aclrtLaunchCallback(copy, nullptr, ACL_CALLBACK_BLOCK, stream));
  aclTensor *in = tensor(x), *out = tensor(y);
  leaky_relu(in, out, stream);
  must(aclrtProcessReport(10000));
  must(aclrtSynchronizeStream(stream));
  must(aclrtUnSubscribeReport(self, stream));
  copy_back(y);
  must(aclDestroyTensor(in));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtDestroyStream(stream));
}

void after_a_callback() {  // it has run: what nothing wrote is seen again
  static int runs = 0;
  float *x = unwritten(), *y = unwritten();
  aclrtStream stream = make_stream();
  const auto self = static_cast<uint64_t>(pthread_self());
  must(aclrtSubscribeReport(self, stream));
  must(aclrtLaunchCallback([](void*) { ++runs; }, nullptr, ACL_CALLBACK_BLOCK, stream));
  must(aclrtProcessReport(10000));
  must(aclrtSynchronizeStream(stream));
  must(aclrtUnSubscribeReport(self, stream));
  run(tensor(x), tensor(y));
  must(aclrtFree(x));
  must(aclrtFree(y));
  must(aclrtDestroyStream(stream));
}

// ---- devices ----

void on_device_1(void (*work)(aclrtStream, float*, float*)) {
  float* x = device_memory(kBytes);
  must(aclrtSetDevice(1));
  aclrtStream stream = make_stream();
  float* y = device_memory(kBytes);
  work(stream, x, y);
  must(aclrtSetDevice(1));
  must(aclrtSynchronizeStream(stream));
  must(aclrtDestroyStream(stream));
  must(aclrtFree(y));
  must(aclrtFree(x));
  must(aclrtResetDeviceForce(1));
  must(aclrtSetDevice(0));
  must(aclrtResetDevice(0));
}

void memory_of_another_device() {
  on_device_1([](aclrtStream stream, float* x, float* y) {
    aclTensor *self = tensor(x), *out = tensor(y);
    leaky_relu(self, out, stream);
    must(aclDestroyTensor(self));
    must(aclDestroyTensor(out));
  });
}

void fill_on_another_devices_stream() {
  on_device_1([](aclrtStream stream, float*, float* y) {
    must(aclrtSetDevice(0));
    must(aclrtMemsetAsync(y, kBytes, 0, kBytes, stream));
    must(aclrtResetDevice(0));
  });
}

void two_devices() {
  on_device_1([](aclrtStream stream, float* x, float* y) {
    must(aclrtMemcpy(y, kBytes, x, kBytes, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE));
    aclTensor *self = tensor(y), *out = tensor(y);
    leaky_relu(self, out, stream);
    must(aclrtSynchronizeStream(stream));
    copy_back(y);
    must(aclDestroyTensor(self));
    must(aclDestroyTensor(out));
  });
}

void threads_without_a_device() {
  for (int i = 0; i < 2; ++i) {
    std::thread([] {
      void* x = nullptr;
      aclrtMalloc(&x, kBytes, ACL_MEM_MALLOC_HUGE_FIRST);
      aclrtMemset(x, kBytes, 0, kBytes);
    }).join();
  }
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

void no_workspace() { workspace_with(0, 0); }
void workspace_promised_too_much() { workspace_with(256, 512); }
void workspace_one_byte_short() { workspace_with(255, 256); }
void workspace_larger_than_needed() { workspace_with(512, 300); }

const std::map<std::string, void (*)()> cases = {
    {"copied_back_uncomputed", copied_back_uncomputed},
    {"half_computed", half_computed},
    {"gaps_read", gaps_read},
    {"carried_by_a_copy", carried_by_a_copy},
    {"result_of_a_refused_call", result_of_a_refused_call},
    {"gaps_copied_back", gaps_copied_back},
    {"gaps_of_broadcast_views", gaps_of_broadcast_views},
    {"written_in_a_callback", written_in_a_callback},
    {"after_a_callback", after_a_callback},
    {"memory_of_another_device", memory_of_another_device},
    {"fill_on_another_devices_stream", fill_on_another_devices_stream},
    {"two_devices", two_devices},
    {"threads_without_a_device", threads_without_a_device},
    {"makers_of_nothing", makers_of_nothing},
    {"reset_twice", reset_twice},
    {"no_workspace", no_workspace},
    {"workspace_promised_too_much", workspace_promised_too_much},
    {"workspace_one_byte_short", workspace_one_byte_short},
    {"workspace_larger_than_needed", workspace_larger_than_needed},
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
    {"refused_shape", refused_shape},
    {"refused_dtype", refused_dtype},
    {"executor_of_another_operator", executor_of_another_operator},
    {"refused_objects", refused_objects},
    {"refused_runtime", refused_runtime},
    {"answers_that_are_no_mistakes", answers_that_are_no_mistakes},
};

}  // namespace

int main(int, char** words) {
  setenv("OPENACLNN_DEVICES", "2", 1);
  begin();
  if (words[2] != nullptr) (void)device_memory(kBytes);
  cases.at(words[1])();
  end();
  return 0;
}
