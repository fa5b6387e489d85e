// SPDX-License-Identifier: Apache-2.0
// Graphs by value: what a stream records, two streams, replays, task groups, conditions.
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "graphs.h"

namespace {

void add_one(void* value) { *static_cast<float*>(value) += 1; }

// Every kind of task, and nothing runs before the replay.
void tasks() {
  constexpr size_t kCount = 1000, kBytes = kCount * sizeof(float);
  aclrtStream stream = new_stream();
  float *x = floats(kCount, -2), *y = floats(kCount), *z = floats(kCount, 7), *w = floats(2, 1);
  aclrtNotify notify = nullptr;
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
  begin(stream);
  CHECK_EQ(leaky(x, y, kCount, 0.5f, stream), 0);
  CHECK_EQ(aclrtMemcpyAsync(z, kBytes, y, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE, stream), 0);
  CHECK_EQ(aclrtMemsetAsync(y, kBytes, 0, kBytes, stream), 0);
  CHECK_EQ(aclrtReduceAsync(w, z, sizeof(float), ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT,
                            stream, nullptr),
           0);
  CHECK_EQ(aclrtValueWrite(x + 2, 0, 0, stream), 0);
  CHECK_EQ(aclrtValueWait(x + 2, 0, ACL_STREAM_WAIT_VALUE_EQ, stream), 0);
  CHECK_EQ(aclrtRecordNotify(notify, stream), 0);
  CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 0), 0);
  CHECK_EQ(aclrtLaunchHostFunc(stream, add_one, w + 1), 0);
  aclmdlRICaptureStatus status;
  aclmdlRI during = nullptr;
  CHECK_EQ(aclmdlRICaptureGetInfo(stream, &status, &during), 0);
  CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  aclmdlRI graph = end(stream);
  CHECK_EQ(during, graph);
  CHECK_EQ(aclmdlRICaptureGetInfo(stream, &status, nullptr), 0);
  CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(z[0], 7.0f);
  CHECK_EQ(w[1], 1.0f);
  CHECK_EQ(aclrtDestroyNotify(notify), 0);  // the graph holds its state
  replay(graph, stream);
  CHECK_EQ(y[kCount - 1], 0.0f);
  CHECK_EQ(z[kCount - 1], -1.0f);
  CHECK_EQ(x[2], 0.0f);
  CHECK_EQ(w[0], 0.0f);
  CHECK_EQ(w[1], 2.0f);
  x[0] = -8;  // addresses are fixed, values are read when it runs
  replay(graph, nullptr);
  CHECK_EQ(z[0], -4.0f);
  CHECK_EQ(w[0], -4.0f);
  CHECK_EQ(w[1], 3.0f);

  uint32_t id = 0;
  char name[8] = "?";
  CHECK_EQ(aclmdlRIGetId(graph, &id), 0);
  CHECK_EQ(aclmdlRISetName(graph, "decode step"), 0);
  CHECK_EQ(aclmdlRIGetName(graph, sizeof name, name), 0);
  CHECK_EQ(std::string(name), "decode ");
  const char* path = "test_graph.json";
  CHECK_EQ(aclmdlRIDebugJsonPrint(graph, path, 0), 0);
  char text[4096] = "";
  std::FILE* file = std::fopen(path, "r");
  CHECK(file != nullptr);
  const size_t length = file == nullptr ? 0 : std::fread(text, 1, sizeof text - 1, file);
  if (file != nullptr) std::fclose(file);
  std::remove(path);
  CHECK(length > 0 && text[0] == '[');
  CHECK(std::strstr(text, "\"aclnnLeakyRelu\"") != nullptr);
  CHECK(std::strstr(text, "\"type\": \"value_wait\"") != nullptr);
  CHECK_EQ(aclmdlRIDebugPrint(graph), 0);
  float ended = 0;
  CHECK_EQ(aclmdlRIDestroyRegisterCallback(graph, add_one, &ended), 0);
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
  CHECK_EQ(ended, 1.0f);
  for (float* p : {x, y, z, w}) CHECK_EQ(aclrtFree(p), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
}

// origin -> other -> origin, replayed 1,000 times.
void two_streams() {
  aclrtStream origin = new_stream(), other = new_stream();
  aclrtEvent fork = new_event(), join = new_event();
  float* x = floats(3, 1);
  begin(origin);
  CHECK_EQ(
      aclrtReduceAsync(x + 1, x, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, origin, nullptr),
      0);
  CHECK_EQ(aclrtRecordEvent(fork, origin), 0);
  CHECK_EQ(aclrtStreamWaitEvent(other, fork), 0);
  aclmdlRICaptureStatus status;
  CHECK_EQ(aclmdlRICaptureGetInfo(other, &status, nullptr), 0);
  CHECK_EQ(status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  CHECK_EQ(aclrtReduceAsync(x + 2, x + 1, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX, ACL_FLOAT, other,
                            nullptr),
           0);
  CHECK_EQ(aclrtRecordEvent(join, other), 0);
  CHECK_EQ(aclrtStreamWaitEvent(origin, join), 0);
  CHECK_EQ(
      aclrtReduceAsync(x + 1, x, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, origin, nullptr),
      0);
  aclmdlRI graph = end(origin);
  CHECK_EQ(aclrtRecordEvent(fork, other), 0);  // free again
  CHECK_EQ(aclrtSynchronizeEvent(fork), 0);
  for (int i = 0; i < 1000; ++i) CHECK_EQ(aclmdlRIExecuteAsync(graph, i % 2 ? origin : other), 0);
  CHECK_EQ(aclrtSynchronizeDevice(), 0);
  CHECK_EQ(x[1], 2001.0f);
  CHECK_EQ(x[2], 2000.0f);
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
  for (aclrtEvent event : {fork, join}) CHECK_EQ(aclrtDestroyEvent(event), 0);
  for (aclrtStream stream : {origin, other}) CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtFree(x), 0);
}

// A replay waits for an external event while another stream updates a task group of it.
void updates() {
  aclrtStream stream = new_stream(), update = new_stream();
  aclrtEvent ready = nullptr;
  CHECK_EQ(aclrtCreateEventWithFlag(&ready, ACL_EVENT_EXTERNAL), 0);
  float *x = floats(4, -8), *y = floats(4);
  aclrtTaskGrp group = nullptr;
  begin(stream);
  CHECK_EQ(aclrtStreamWaitEvent(stream, ready), 0);
  CHECK_EQ(aclrtResetEvent(ready, stream), 0);
  CHECK_EQ(aclmdlRICaptureTaskGrpBegin(stream), 0);
  CHECK_EQ(leaky(x, y, 4, 0.5f, stream), 0);
  CHECK_FAILS(aclrtMemsetAsync(y, 4, 0, 4, stream), 507009, "operators only");
  CHECK_EQ(aclmdlRICaptureTaskGrpEnd(stream, &group), 0);
  aclmdlRI graph = end(stream);

  const auto change = [&](float slope, int calls) {
    CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(update, group), 0);
    for (int i = 0; i < calls; ++i) CHECK_EQ(leaky(x, y, 4, slope, update), 0);
    return aclmdlRICaptureTaskUpdateEnd(update);
  };
  for (int i = 1; i <= 50; ++i) {
    CHECK_EQ(aclmdlRIExecuteAsync(graph, stream), 0);
    CHECK_EQ(aclmdlRIDestroy(graph), 107037);
    CHECK_EQ(change(static_cast<float>(i), 1), 0);
    CHECK_EQ(aclrtRecordEvent(ready, update), 0);
    CHECK_EQ(aclrtSynchronizeStream(stream), 0);
    CHECK_EQ(y[3], -8.0f * static_cast<float>(i));
  }
  CHECK_EQ(change(0, 0), 0);  // the old task stays
  CHECK_EQ(aclrtRecordEvent(ready, update), 0);
  replay(graph, stream);
  CHECK_EQ(y[0], -400.0f);
  CHECK_FAILS(change(1, 2), 107033, "the group has 1 tasks, but the update submitted 2");
  CHECK_FAILS(aclmdlRICaptureTaskUpdateEnd(update), 107033, "updates no group");
  CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(update, group), 0);
  CHECK_FAILS(aclmdlRICaptureTaskUpdateBegin(stream, group), 107033, "another stream updates");
  CHECK_EQ(aclmdlRICaptureTaskUpdateEnd(update), 0);
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
  CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(update, group), 107017);
  CHECK_EQ(aclrtDestroyEvent(ready), 0);
  for (aclrtStream own : {stream, update}) CHECK_EQ(aclrtDestroyStream(own), 0);
  for (float* p : {x, y}) CHECK_EQ(aclrtFree(p), 0);
}

void count_down(void* value) { --*static_cast<uint64_t*>(value); }

// while (condition) { x += 1; --condition }, then one of two branches.
void conditions() {
  aclrtStream stream = new_stream(), part = new_stream();
  float* x = floats(4, 1);
  x[1] = x[2] = x[3] = 0;
  begin(stream);
  aclmdlRI graph = nullptr;
  aclmdlRICaptureStatus status;
  CHECK_EQ(aclmdlRICaptureGetInfo(stream, &status, &graph), 0);
  aclmdlRICondHandle loop = nullptr, choice = nullptr;
  CHECK_EQ(aclmdlRICondHandleCreate(graph, 3, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &loop), 0);
  CHECK_EQ(aclmdlRICondHandleCreate(graph, 0, static_cast<aclmdlRICondHandleFlag>(0), &choice), 0);
  uint64_t *left = nullptr, *which = nullptr;
  CHECK_EQ(aclmdlRICondHandleGetCondPtr(loop, &left), 0);
  CHECK_EQ(aclmdlRICondHandleGetCondPtr(choice, &which), 0);
  const auto add = [&](float* to, aclrtStream on) {
    return aclrtReduceAsync(to, x, 4, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, on, nullptr);
  };
  aclmdlRI body = nullptr, branches[2] = {};
  CHECK_EQ(aclmdlRIAddCondTask({loop, ACL_MODEL_RI_COND_TYPE_WHILE, 1, &body}, stream, 0), 0);
  CHECK_EQ(aclmdlRICaptureToModelRIBegin(part, body, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), 0);
  CHECK_EQ(add(x + 1, part), 0);
  CHECK_EQ(aclrtLaunchHostFunc(part, count_down, left), 0);
  aclmdlRI ended = nullptr;
  CHECK_FAILS(aclmdlRICaptureEnd(stream, &ended), 107045, "still being captured");
  CHECK_EQ(end(part), body);
  CHECK_EQ(aclmdlRIAddCondTask({choice, ACL_MODEL_RI_COND_TYPE_IF, 2, branches}, stream, 0), 0);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQ(aclmdlRICaptureToModelRIBegin(part, branches[i], ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), 0);
    CHECK_EQ(add(x + 2 + i, part), 0);
    (void)end(part);
  }
  CHECK_EQ(end(stream), graph);
  CHECK_EQ(aclmdlRIDestroy(body), 107000);
  replay(graph, stream);
  *which = 1;
  replay(graph, stream);
  replay(graph, stream);
  CHECK_EQ(x[1], 9.0f);
  CHECK_EQ(x[2], 2.0f);
  CHECK_EQ(x[3], 1.0f);
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
  CHECK_EQ(aclmdlRICondHandleGetCondPtr(loop, &left), 107017);
  CHECK_EQ(aclmdlRICaptureToModelRIBegin(part, body, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), 107017);
  for (aclrtStream own : {stream, part}) CHECK_EQ(aclrtDestroyStream(own), 0);
  CHECK_EQ(aclrtFree(x), 0);
}

// Two threads capture, replay and destroy at the same time.
void threads() {
  const auto work = [] {
    CHECK_EQ(aclrtSetDevice(0), 0);
    aclrtStream stream = new_stream();
    float *x = floats(64, -1), *y = floats(64);
    for (int i = 0; i < 50; ++i) {
      begin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL);
      CHECK_EQ(leaky(x, y, 64, static_cast<float>(i), stream), 0);
      aclmdlRI graph = end(stream);
      replay(graph, stream);
      CHECK_EQ(y[63], -static_cast<float>(i));
      CHECK_EQ(aclmdlRIDestroy(graph), 0);
    }
    for (float* p : {x, y}) CHECK_EQ(aclrtFree(p), 0);
    CHECK_EQ(aclrtDestroyStream(stream), 0);
  };
  std::thread other(work);
  work();
  other.join();
}

}  // namespace

int main() {
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  tasks();
  two_streams();
  updates();
  conditions();
  threads();
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclFinalize(), 0);
  return check_result();
}
