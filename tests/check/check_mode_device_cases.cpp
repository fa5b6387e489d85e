// SPDX-License-Identifier: Apache-2.0
// Mistakes with what lies in device memory and with two devices; the argument names one.
// tests/check/test_cases.py knows what is reported for each.
#include <pthread.h>

#include <cstdlib>
#include <map>
#include <string>
#include <thread>

#include "../../examples/mistakes/mistake.h"

namespace {

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

// A stream whose work waits for a callback that no thread runs, and is then dropped.
template <class Work>
void drop(Work work) {
  aclrtStream stream = make_stream();
  must(aclrtSubscribeReport(static_cast<uint64_t>(pthread_self()), stream));
  must(aclrtLaunchCallback([](void*) {}, nullptr, ACL_CALLBACK_BLOCK, stream));
  work(stream);
  must(aclrtDestroyStreamForce(stream));
}

void result_of_a_dropped_operator() {
  float *x = device_memory(kBytes), *y = device_memory(kBytes);
  aclTensor *self = tensor(x, kLength / 2), *out = tensor(y, kLength / 2);
  drop([&](aclrtStream stream) { leaky_relu(self, out, stream); });
  copy_back(y);
  must(aclDestroyTensor(self));
  must(aclDestroyTensor(out));
  must(aclrtFree(x));
  must(aclrtFree(y));
}

void result_of_a_dropped_fill() {
  float* y = unwritten();
  drop([&](aclrtStream stream) { must(aclrtMemsetAsync(y, kBytes, 0, kBytes, stream)); });
  copy_back(y);
  must(aclrtFree(y));
}

void dropped_and_computed_again() {  // is no mistake
  float *x = device_memory(kBytes), *y = unwritten();
  aclTensor *self = tensor(x), *out = tensor(y);
  drop([&](aclrtStream stream) { leaky_relu(self, out, stream); });
  run(self, out);
  copy_back(y);
  must(aclrtFree(x));
  must(aclrtFree(y));
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

const std::map<std::string, void (*)()> cases = {
    {"result_of_a_refused_call", result_of_a_refused_call},
    {"result_of_a_dropped_operator", result_of_a_dropped_operator},
    {"result_of_a_dropped_fill", result_of_a_dropped_fill},
    {"dropped_and_computed_again", dropped_and_computed_again},
    {"copied_back_uncomputed", copied_back_uncomputed},
    {"half_computed", half_computed},
    {"gaps_read", gaps_read},
    {"carried_by_a_copy", carried_by_a_copy},
    {"gaps_copied_back", gaps_copied_back},
    {"gaps_of_broadcast_views", gaps_of_broadcast_views},
    {"written_in_a_callback", written_in_a_callback},
    {"after_a_callback", after_a_callback},
    {"memory_of_another_device", memory_of_another_device},
    {"fill_on_another_devices_stream", fill_on_another_devices_stream},
    {"two_devices", two_devices},
    {"threads_without_a_device", threads_without_a_device},
};

}  // namespace

int main(int, char** words) {
  setenv("OPENACLNN_DEVICES", "2", 1);
  begin();
  cases.at(words[1])();
  end();
  return 0;
}
