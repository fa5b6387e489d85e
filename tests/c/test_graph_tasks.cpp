// SPDX-License-Identifier: Apache-2.0
// Streams and tasks of a graph, and tasks that replays leave out.
#include "gate.h"
#include "graphs.h"

namespace {

std::vector<aclmdlRITask> tasks_of(aclrtStream stream) {
  uint32_t count = 99;
  CHECK_EQ(aclmdlRIGetTasksByStream(stream, nullptr, &count), 0);
  std::vector<aclmdlRITask> tasks(count);
  CHECK_EQ(aclmdlRIGetTasksByStream(stream, tasks.data(), &count), 0);
  return tasks;
}

// x -> y on the origin, a value, y -> x on another stream.
aclmdlRI captured(Fixture& f, uint64_t* value) {
  aclrtEvent join = new_event();
  begin(f.stream);
  CHECK_EQ(leaky(f.x, f.y, 8, 2, f.stream), 0);
  CHECK_EQ(aclrtValueWrite(value, 7, 0, f.stream), 0);
  CHECK_EQ(aclrtRecordEvent(f.event, f.stream), 0);
  CHECK_EQ(aclrtStreamWaitEvent(f.other, f.event), 0);
  CHECK_EQ(leaky(f.y, f.x, 8, 2, f.other), 0);
  CHECK_EQ(aclrtRecordEvent(join, f.other), 0);
  CHECK_EQ(aclrtStreamWaitEvent(f.stream, join), 0);
  aclmdlRI graph = end(f.stream);
  CHECK_EQ(aclrtDestroyEvent(join), 0);
  return graph;
}

void inspection(Fixture& f, uint64_t* value) {
  aclmdlRI graph = captured(f, value);
  uint32_t count = 0;
  CHECK_EQ(aclmdlRIGetStreams(graph, nullptr, &count), 0);
  CHECK_EQ(count, 2u);
  aclrtStream streams[2] = {};
  count = 1;
  CHECK_FAILS(aclmdlRIGetStreams(graph, streams, &count), 107039, "has room for 1");
  CHECK_EQ(aclmdlRIGetStreams(graph, streams, &count), 0);
  const int types[2][4] = {{1, 5, 2, 3}, {3, 1, 2}};
  const uint32_t numbers[2][4] = {{0, 1, 2, 6}, {3, 4, 5}};
  for (int i = 0; i < 2; ++i) {
    const std::vector<aclmdlRITask> tasks = tasks_of(streams[i]);
    CHECK_EQ(tasks.size(), i == 0 ? 4u : 3u);
    CHECK(tasks == tasks_of(streams[i]));
    for (size_t k = 0; k < tasks.size(); ++k) {
      aclmdlRITaskType type;
      uint32_t number = 99;
      CHECK_EQ(aclmdlRITaskGetType(tasks[k], &type), 0);
      CHECK_EQ(static_cast<int>(type), types[i][k]);
      CHECK_EQ(aclmdlRITaskGetSeqId(tasks[k], &number), 0);
      CHECK_EQ(number, numbers[i][k]);
    }
  }
  aclmdlRITask task = tasks_of(streams[0])[1];
  for (void* wrong : {static_cast<void*>(nullptr), static_cast<void*>(f.x), f.stream, graph}) {
    const int code = wrong == nullptr ? 100000 : 107017;
    count = 4;
    aclmdlRITask tasks[4];
    aclmdlRITaskType type;
    CHECK_EQ(aclmdlRIGetTasksByStream(wrong, tasks, &count), code);
    CHECK_EQ(aclmdlRITaskGetType(wrong, &type), code);
    CHECK_EQ(aclmdlRITaskGetSeqId(wrong, &count), code);
    CHECK_EQ(aclmdlRITaskDisable(wrong), code);
    if (wrong == graph) continue;
    CHECK_EQ(aclmdlRIGetStreams(wrong, nullptr, &count), code);
    CHECK_EQ(aclmdlRIUpdate(wrong), code);
  }
  CHECK_EQ(aclmdlRIGetStreams(graph, nullptr, nullptr), 100000);
  CHECK_EQ(aclmdlRIGetTasksByStream(streams[0], nullptr, nullptr), 100000);
  CHECK_EQ(aclmdlRITaskGetType(task, nullptr), 100000);
  CHECK_EQ(aclmdlRITaskGetSeqId(task, nullptr), 100000);
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
  CHECK_EQ(aclmdlRIGetTasksByStream(streams[0], nullptr, &count), 107017);
  CHECK_EQ(aclmdlRITaskDisable(task), 107017);
}

void left_out(Fixture& f, uint64_t* value) {
  aclmdlRI graph = captured(f, value);
  aclrtStream streams[2] = {};
  uint32_t count = 2;
  CHECK_EQ(aclmdlRIGetStreams(graph, streams, &count), 0);
  const auto run = [&] {
    *value = 0, f.x[0] = -1, f.y[0] = 0;
    replay(graph, f.stream);
  };
  CHECK_EQ(aclmdlRITaskDisable(tasks_of(streams[0])[1]), 0);
  CHECK_EQ(aclmdlRITaskDisable(tasks_of(streams[1])[1]), 0);
  run();
  CHECK_EQ(*value, 7u);  // not yet
  CHECK_EQ(f.x[0], -4.0f);
  {
    Gate gate(f.stream);
    CHECK_EQ(aclmdlRIExecuteAsync(graph, f.stream), 0);
    CHECK_FAILS(aclmdlRIUpdate(graph), 107040, "modelRI is running");
  }
  CHECK_EQ(aclrtSynchronizeStream(f.stream), 0);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQ(aclmdlRIUpdate(graph), 0);
    run();
    CHECK_EQ(*value, 0u);
    CHECK_EQ(f.x[0], -1.0f);
    CHECK_EQ(f.y[0], -2.0f);
  }
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
}

// A part that was captured without tasks may be captured again.
void part(Fixture& f) {
  aclmdlRI graph = nullptr, part = nullptr;
  aclmdlRICondHandle condition = nullptr;
  aclmdlRICaptureStatus status;
  begin(f.stream);
  CHECK_EQ(aclmdlRICaptureGetInfo(f.stream, &status, &graph), 0);
  CHECK_EQ(aclmdlRICondHandleCreate(graph, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &condition),
           0);
  CHECK_EQ(aclmdlRIAddCondTask({condition, ACL_MODEL_RI_COND_TYPE_IF, 1, &part}, f.stream, 0), 0);
  aclrtStream stream = nullptr;
  uint32_t count = 1;
  CHECK_EQ(aclmdlRIGetStreams(part, &stream, &count), 0);
  CHECK_EQ(aclmdlRICaptureToModelRIBegin(f.other, part, kRelaxed), 0);
  CHECK_EQ(leaky(f.x, f.y, 8, 2, f.other), 0);
  CHECK_FAILS(aclmdlRIGetTasksByStream(stream, nullptr, &count), 107026, "still being captured");
  CHECK_EQ(end(f.other), part);
  CHECK_EQ(tasks_of(stream).size(), 1u);
  CHECK_EQ(aclmdlRIDestroy(end(f.stream)), 0);
  CHECK_EQ(aclmdlRIGetTasksByStream(stream, nullptr, &count), 107017);
}

// The steps of a built model are tasks, but stay.
void built_model(uint64_t* value) {
  aclmdlRI model = nullptr;
  aclrtStream bound = nullptr, streams[2] = {};
  CHECK_EQ(aclmdlRIBuildBegin(&model, 0), 0);
  CHECK_EQ(aclrtCreateStreamWithConfig(&bound, 0, ACL_STREAM_PERSISTENT), 0);
  CHECK_EQ(aclmdlRIBindStream(model, bound, ACL_MODEL_STREAM_FLAG_HEAD), 0);
  CHECK_EQ(aclrtValueWrite(value, 7, 0, bound), 0);
  CHECK_EQ(aclmdlRIEndTask(model, bound), 0);
  uint32_t count = 2;
  CHECK_EQ(aclmdlRIGetStreams(model, streams, &count), 107026);
  CHECK_EQ(aclmdlRIBuildEnd(model, nullptr), 0);
  CHECK_EQ(aclmdlRIGetStreams(model, streams, &count), 0);
  CHECK_EQ(count, 1u);
  const std::vector<aclmdlRITask> tasks = tasks_of(streams[0]);
  CHECK_EQ(tasks.size(), 2u);
  CHECK_FAILS(aclmdlRITaskDisable(tasks[1]), 207000, "cannot be left out");
  CHECK_EQ(aclmdlRITaskDisable(tasks[0]), 0);
  CHECK_EQ(aclmdlRIUpdate(model), 0);
  *value = 0;
  CHECK_EQ(aclmdlRIExecute(model, -1), 0);
  CHECK_EQ(*value, 0u);
  CHECK_EQ(aclmdlRIUnbindStream(model, bound), 0);
  CHECK_EQ(aclrtDestroyStream(bound), 0);
  CHECK_EQ(aclmdlRIDestroy(model), 0);
}

}  // namespace

int main() {
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  {
    Fixture fixture;
    float* memory = floats(2);
    inspection(fixture, reinterpret_cast<uint64_t*>(memory));
    left_out(fixture, reinterpret_cast<uint64_t*>(memory));
    part(fixture);
    built_model(reinterpret_cast<uint64_t*>(memory));
    CHECK_EQ(aclrtFree(memory), 0);
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclFinalize(), 0);
  return check_result();
}
