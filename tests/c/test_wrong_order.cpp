// SPDX-License-Identifier: Apache-2.0
// Objects that end before what needs them: work that was submitted is done, and what comes later is
// an error with a sentence.
#include <vector>

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"
#include "gate.h"

namespace {

constexpr int64_t kElements = 1 << 16;  // too long to run on the thread that submits

struct Tensors {
  std::vector<float> x, y;
  aclTensor *self, *out;
  aclScalar* slope;

  Tensors() : x(kElements, -2), y(kElements, 0) {
    float value = 0.5f;
    self = make(x);
    out = make(y);
    slope = aclCreateScalar(&value, ACL_FLOAT);
  }
  static aclTensor* make(std::vector<float>& data) {
    const int64_t n = kElements;
    return aclCreateTensor(&n, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &n, 1, data.data());
  }
  aclOpExecutor* plan(uint64_t* size) const {
    aclOpExecutor* executor = nullptr;
    CHECK_EQ(aclnnLeakyReluGetWorkspaceSize(self, slope, out, size, &executor), 0);
    return executor;
  }
  void end() const {
    CHECK_EQ(aclDestroyTensor(self), 0);
    CHECK_EQ(aclDestroyTensor(out), 0);
    CHECK_EQ(aclDestroyScalar(slope), 0);
  }
};

aclrtStream make_stream() {
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  return stream;
}

aclrtEvent make_event() {
  aclrtEvent event = nullptr;
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  return event;
}

void stream_before_its_events() {
  const aclrtStream stream = make_stream(), other = make_stream();
  const aclrtEvent first = make_event(), second = make_event();
  CHECK_EQ(aclrtRecordEvent(first, stream), 0);
  CHECK_EQ(aclrtRecordEvent(second, stream), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  float ms = -1;
  CHECK_EQ(aclrtSynchronizeEvent(second), 0);
  CHECK_EQ(aclrtEventElapsedTime(&ms, first, second), 0);
  CHECK(ms >= 0);
  CHECK_EQ(aclrtStreamWaitEvent(other, first), 0);
  CHECK_FAILS(aclrtRecordEvent(first, stream), 107017, "stream");
  CHECK_FAILS(aclrtStreamWaitEvent(stream, first), 107017, "stream");
  CHECK_FAILS(aclrtSynchronizeStream(stream), 107017, "stream");
  CHECK_EQ(aclrtSynchronizeStream(other), 0);
  for (const aclrtEvent event : {first, second}) CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_FAILS(aclrtDestroyEvent(first), 107017, "event");
  CHECK_EQ(aclrtDestroyStream(other), 0);
}

void event_before_its_waiters() {
  const aclrtStream first = make_stream(), second = make_stream();
  const aclrtEvent event = make_event();
  {
    Gate gate(first);
    CHECK_EQ(aclrtRecordEvent(event, first), 0);
    CHECK_EQ(aclrtStreamWaitEvent(second, event), 0);
    CHECK_EQ(aclrtDestroyEvent(event), 0);
    gate.open();
  }
  CHECK_EQ(aclrtSynchronizeStream(second), 0);
  for (const aclrtStream stream : {first, second}) CHECK_EQ(aclrtDestroyStream(stream), 0);
}

void context_before_its_streams() {
  aclrtContext own = nullptr, before = nullptr;
  CHECK_EQ(aclrtGetCurrentContext(&before), 0);
  CHECK_EQ(aclrtCreateContext(&own, 0), 0);
  CHECK_EQ(aclrtSetCurrentContext(own), 0);
  const aclrtStream stream = make_stream();
  const aclrtEvent event = make_event();
  void* memory = nullptr;
  CHECK_EQ(aclrtMalloc(&memory, kElements, ACL_MEM_MALLOC_NORMAL_ONLY), 0);
  CHECK_EQ(aclrtMemsetAsync(memory, kElements, 7, kElements, stream), 0);
  CHECK_EQ(aclrtRecordEvent(event, stream), 0);
  const Tensors tensors;
  uint64_t size = 0;
  aclOpExecutor* executor = tensors.plan(&size);
  CHECK_EQ(aclrtDestroyContext(own), 0);
  CHECK_EQ(static_cast<char*>(memory)[kElements - 1], 7);  // it waited
  CHECK_EQ(aclrtSetCurrentContext(before), 0);
  CHECK_FAILS(aclrtMemsetAsync(memory, kElements, 8, kElements, stream), 107003, "context");
  CHECK_EQ(aclnnLeakyRelu(nullptr, size, executor, stream), 361001);
  CHECK_EQ(aclDestroyAclOpExecutor(executor), 0);
  CHECK_EQ(aclrtSynchronizeEvent(event), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtFree(memory), 0);
  CHECK_FAILS(aclrtDestroyContext(own), 107017, "context");
  tensors.end();
}

void device_before_everything() {
  const aclrtStream stream = make_stream();
  const aclrtEvent event = make_event();
  aclrtNotify notify = nullptr;
  aclmdlRI graph = nullptr;
  void* memory = nullptr;
  CHECK_EQ(aclrtMalloc(&memory, kElements, ACL_MEM_MALLOC_NORMAL_ONLY), 0);
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
  CHECK_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 0);
  CHECK_EQ(aclrtMemsetAsync(memory, kElements, 3, kElements, stream), 0);
  CHECK_EQ(aclmdlRICaptureEnd(stream, &graph), 0);
  CHECK_EQ(aclmdlRIExecuteAsync(graph, stream), 0);
  CHECK_EQ(aclrtRecordEvent(event, stream), 0);
  const Tensors tensors;
  uint64_t size = 0;
  aclOpExecutor* executor = tensors.plan(&size);
  CHECK_EQ(aclrtResetDeviceForce(0), 0);
  CHECK_EQ(static_cast<char*>(memory)[kElements - 1], 3);
  CHECK(aclmdlRIExecuteAsync(graph, stream) != 0);
  CHECK(aclrtRecordEvent(event, stream) != 0);
  CHECK(aclrtRecordNotify(notify, stream) != 0);
  CHECK_EQ(aclnnLeakyRelu(nullptr, size, executor, stream), 361001);
  CHECK_EQ(aclDestroyAclOpExecutor(executor), 0);
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
  CHECK_EQ(aclrtDestroyNotify(notify), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtFree(memory), 0);
  tensors.end();
  CHECK_EQ(aclrtSetDevice(0), 0);
  (void)aclGetRecentErrMsg();
}

// The plan is data: what it was made from may be gone before it runs.
void tensors_before_their_executor() {
  const Tensors tensors;
  const aclrtStream stream = make_stream();
  uint64_t size = 0;
  aclOpExecutor* executor = tensors.plan(&size);
  tensors.end();
  CHECK_FAILS(aclDestroyTensor(tensors.self), 161002, "tensor");
  {
    Gate gate(stream);
    CHECK_EQ(aclnnLeakyRelu(nullptr, size, executor, stream), 0);
    CHECK_EQ(aclDestroyAclOpExecutor(executor), 0);  // consumed
    gate.open();
  }
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(tensors.y[kElements - 1], -1.0f);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

void repeatable_executor_before_its_run() {
  const Tensors tensors;
  const aclrtStream stream = make_stream();
  uint64_t size = 0;
  aclOpExecutor* executor = tensors.plan(&size);
  CHECK_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
  {
    Gate gate(stream);
    CHECK_EQ(aclnnLeakyRelu(nullptr, size, executor, stream), 0);
    CHECK_EQ(aclDestroyAclOpExecutor(executor), 0);
    CHECK_FAILS(aclnnLeakyRelu(nullptr, size, executor, stream), 161002, "executor was already");
    CHECK_FAILS(aclDestroyAclOpExecutor(executor), 161002, "executor");
    gate.open();
  }
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(tensors.y[0], -1.0f);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  tensors.end();
}

void lists_and_their_items() {
  const Tensors tensors;
  const aclTensor* both[] = {tensors.self, tensors.out};
  const aclTensor* twice[] = {tensors.self, tensors.self};
  aclTensorList* list = aclCreateTensorList(both, 2);
  aclTensorList* again = aclCreateTensorList(twice, 2);
  CHECK_EQ(aclDestroyTensor(tensors.out), 0);  // before the list that owns it
  CHECK_EQ(aclDestroyTensorList(list), 0);
  CHECK_EQ(aclDestroyTensorList(again), 0);  // its tensor is gone already
  CHECK_FAILS(aclDestroyTensorList(list), 161002, "array");
  CHECK_FAILS(aclDestroyTensor(tensors.self), 161002, "tensor");
  CHECK(aclCreateTensorList(both, 2) == nullptr);
  const aclScalar* scalars[] = {tensors.slope, tensors.slope};
  aclScalarList* values = aclCreateScalarList(scalars, 2);
  CHECK_EQ(aclDestroyScalarList(values), 0);
  CHECK_FAILS(aclDestroyScalar(tensors.slope), 161002, "scalar");
  (void)aclGetRecentErrMsg();
}

void notify_before_its_waiter() {
  const aclrtStream stream = make_stream();
  aclrtNotify notify = nullptr;
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 1), 0);
  CHECK_EQ(aclrtDestroyNotify(notify), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 107020);  // nobody can record it any more
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  (void)aclGetRecentErrMsg();
}

void graph_while_it_runs() {
  const aclrtStream stream = make_stream(), other = make_stream();
  void* memory = nullptr;
  aclmdlRI graph = nullptr;
  CHECK_EQ(aclrtMalloc(&memory, kElements, ACL_MEM_MALLOC_NORMAL_ONLY), 0);
  CHECK_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 0);
  CHECK_EQ(aclrtMemsetAsync(memory, kElements, 5, kElements, stream), 0);
  CHECK_EQ(aclmdlRICaptureEnd(stream, &graph), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);  // that it was captured on
  {
    Gate gate(other);
    CHECK_EQ(aclmdlRIExecuteAsync(graph, other), 0);
    CHECK_EQ(aclmdlRIDestroy(graph), 107037);  // it has work
    gate.open();
  }
  CHECK_EQ(aclrtSynchronizeStream(other), 0);
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
  CHECK_EQ(static_cast<char*>(memory)[kElements - 1], 5);
  CHECK(aclmdlRIExecuteAsync(graph, other) != 0);
  CHECK_EQ(aclrtDestroyStream(other), 0);
  CHECK_EQ(aclrtFree(memory), 0);
  (void)aclGetRecentErrMsg();
}

// A stream that ends while it captures.
void stream_before_its_capture() {
  const aclrtStream stream = make_stream();
  aclmdlRI graph = nullptr;
  CHECK_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 0);
  const int code = aclrtDestroyStream(stream);
  if (code == 0) {
    CHECK(aclmdlRICaptureEnd(stream, &graph) != 0);
  } else {
    (void)aclmdlRICaptureEnd(stream, &graph);
    if (graph != nullptr) CHECK_EQ(aclmdlRIDestroy(graph), 0);
    CHECK_EQ(aclrtDestroyStream(stream), 0);
  }
  (void)aclGetRecentErrMsg();
}

}  // namespace

int main() {
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  stream_before_its_events();
  event_before_its_waiters();
  context_before_its_streams();
  device_before_everything();
  tensors_before_their_executor();
  repeatable_executor_before_its_run();
  lists_and_their_items();
  notify_before_its_waiter();
  graph_while_it_runs();
  stream_before_its_capture();
  // acl itself before what it made.
  const aclrtStream stream = make_stream();
  const aclrtEvent event = make_event();
  CHECK_EQ(aclrtRecordEvent(event, stream), 0);
  CHECK_EQ(aclFinalize(), 0);
  CHECK_EQ(aclrtSynchronizeEvent(event), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}
