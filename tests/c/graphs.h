// SPDX-License-Identifier: Apache-2.0
// What the tests of graphs share: memory, one operator by value, a stream in capture.
#pragma once

#include <cstdint>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"

inline float* floats(size_t count, float value = 0) {
  void* p = nullptr;
  CHECK_EQ(aclrtMalloc(&p, count * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST), 0);
  for (size_t i = 0; i < count; ++i) static_cast<float*>(p)[i] = value;
  return static_cast<float*>(p);
}

inline aclrtStream new_stream() {
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  return stream;
}

inline aclrtEvent new_event() {
  aclrtEvent event = nullptr;
  CHECK_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), 0);
  return event;
}

// y = x < 0 ? slope * x : x; the tensors end before it returns.
inline aclnnStatus leaky(float* x, float* y, int64_t count, float slope, aclrtStream stream) {
  const int64_t shape[] = {count}, strides[] = {1};
  aclTensor* self = aclCreateTensor(shape, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, shape, 1, x);
  aclTensor* out = aclCreateTensor(shape, 1, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, shape, 1, y);
  aclScalar* scalar = aclCreateScalar(&slope, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_EQ(aclnnLeakyReluGetWorkspaceSize(self, scalar, out, &size, &executor), 0);
  const aclnnStatus status = aclnnLeakyRelu(nullptr, 0, executor, stream);
  if (status != 0) aclDestroyAclOpExecutor(executor);
  aclDestroyTensor(self);
  aclDestroyTensor(out);
  aclDestroyScalar(scalar);
  return status;
}

constexpr auto kGlobal = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
constexpr auto kThread = ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
constexpr auto kRelaxed = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
inline aclmdlRICaptureMode usual_mode = kGlobal;  // of captures that name none

// Calls f() with captures in each mode.
template <class F>
void in_each_mode(F f) {
  for (const auto mode : {kThread, kRelaxed, kGlobal}) {
    usual_mode = mode;
    f();
  }
}

inline void begin(aclrtStream stream, aclmdlRICaptureMode mode = usual_mode) {
  CHECK_EQ(aclmdlRICaptureBegin(stream, mode), 0);
}

inline aclmdlRI end(aclrtStream stream) {
  aclmdlRI graph = nullptr;
  CHECK_EQ(aclmdlRICaptureEnd(stream, &graph), 0);
  CHECK(graph != nullptr);
  return graph;
}

inline void replay(aclmdlRI graph, aclrtStream stream) {
  CHECK_EQ(aclmdlRIExecuteAsync(graph, stream), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
}

// Two streams, an event, two tensors.
struct Fixture {
  aclrtStream stream = new_stream(), other = new_stream();
  aclrtEvent event = new_event();
  float *x = floats(8, 1), *y = floats(8);
  ~Fixture() {
    CHECK_EQ(aclrtDestroyEvent(event), 0);
    for (aclrtStream own : {stream, other}) CHECK_EQ(aclrtDestroyStream(own), 0);
    for (float* p : {x, y}) CHECK_EQ(aclrtFree(p), 0);
  }
};

// A stream in capture, and the part that its graph runs.
struct Condition {
  aclmdlRI graph = nullptr, part = nullptr;
  aclmdlRICondHandle handle = nullptr;

  explicit Condition(aclrtStream stream) {
    aclmdlRICaptureStatus status;
    begin(stream);
    CHECK_EQ(aclmdlRICaptureGetInfo(stream, &status, &graph), 0);
    CHECK_EQ(aclmdlRICondHandleCreate(graph, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &handle),
             0);
    CHECK_EQ(aclmdlRIAddCondTask({handle, ACL_MODEL_RI_COND_TYPE_IF, 1, &part}, stream, 0), 0);
  }
  void capture(aclrtStream stream) const {
    CHECK_EQ(aclmdlRICaptureToModelRIBegin(stream, part, kRelaxed), 0);
  }
};
