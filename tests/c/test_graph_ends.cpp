// SPDX-License-Identifier: Apache-2.0
// Captures, parts of conditions, updates and replays whose stream or graph ends before them.
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gate.h"
#include "graphs.h"

namespace {

void add_one(void* value) { *static_cast<float*>(value) += 1; }

// A part whose capture fails loses its tasks and its groups.
void failed_part(Fixture& f) {
  const Condition condition(f.stream);
  aclmdlRI part = condition.part, none = nullptr;
  aclrtStream update = new_stream();
  aclrtTaskGrp group = nullptr;
  for (const bool during : {false, true}) {
    CHECK_EQ(aclmdlRICaptureToModelRIBegin(f.other, part, kRelaxed), 0);
    CHECK_EQ(aclmdlRICaptureTaskGrpBegin(f.other), 0);
    CHECK_EQ(leaky(f.x, f.y, 8, 1, f.other), 0);
    CHECK_EQ(aclmdlRICaptureTaskGrpEnd(f.other, &group), 0);
    if (during) CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(update, group), 0);
    CHECK_EQ(aclrtSynchronizeStream(f.other), 107030);
    CHECK_EQ(aclmdlRICaptureEnd(f.other, &none), 507903);
    if (!during) CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(update, group), 107017);
  }
  CHECK_EQ(aclmdlRICaptureToModelRIBegin(update, part, kRelaxed), 107033);  // it updates a group
  CHECK_EQ(leaky(f.x, f.y, 8, 1, update), 0);
  CHECK_FAILS(aclmdlRICaptureTaskUpdateEnd(update), 107033, "were dropped");
  CHECK_EQ(aclmdlRICaptureToModelRIBegin(update, part, kRelaxed), 0);
  CHECK_EQ(aclmdlRICaptureToModelRIBegin(f.other, part, kRelaxed), 107026);
  CHECK_EQ(end(update), part);
  CHECK_EQ(aclmdlRIDestroy(end(f.stream)), 0);
  CHECK_EQ(aclrtDestroyStream(update), 0);
}

// A condition that does not fit among the live graphs leaves none behind.
void too_many_parts(Fixture& f) {
  const Condition condition(f.stream);
  std::vector<aclmdlRI> parts(1024);
  int code = 0;
  for (int i = 0; code == 0 && i < 65; ++i) {
    code = aclmdlRIAddCondTask(
        {condition.handle, ACL_MODEL_RI_COND_TYPE_SWITCH, 1024, parts.data()}, f.stream, 0);
  }
  CHECK_EQ(code, 207008);
  CHECK_TEXT("too many live graphs");
  begin(f.other);
  CHECK_EQ(aclmdlRIDestroy(end(f.other)), 0);
  CHECK_EQ(aclmdlRIDestroy(end(f.stream)), 0);
}

// A part is executed by its graph only, which owns the memory of the condition.
void executed_part(Fixture& f) {
  const Condition condition(f.stream);
  condition.capture(f.other);
  CHECK_EQ(leaky(f.x, f.y, 8, 1, f.other), 0);
  CHECK_EQ(end(f.other), condition.part);
  CHECK_FAILS(aclmdlRIExecuteAsync(condition.part, f.other), 107000, "belongs to a condition");
  CHECK_EQ(end(f.stream), condition.graph);
  CHECK_FAILS(aclmdlRIExecuteAsync(condition.part, f.other), 107000, "belongs to a condition");
  CHECK_EQ(aclmdlRIExecute(condition.part, -1), 107000);
  replay(condition.graph, f.other);
  CHECK_EQ(f.y[7], 1.0f);
  CHECK_EQ(aclmdlRIDestroy(condition.graph), 0);
}

// The stream that captures a part ends: nothing of the part is left, and the graph is refused.
void part_without_stream(Fixture& f) {
  const Condition condition(f.stream);
  aclrtStream other = new_stream();
  aclmdlRI graph = nullptr;
  condition.capture(other);
  CHECK_EQ(leaky(f.x, f.y, 8, 1, other), 0);
  CHECK_EQ(aclrtDestroyStream(other), 0);
  CHECK_FAILS(leaky(f.x, f.y, 8, 1, f.stream), 361001, "captured a part was destroyed");
  condition.capture(f.other);  // empty again
  CHECK_EQ(end(f.other), condition.part);
  CHECK_FAILS(aclmdlRICaptureEnd(f.stream, &graph), 507903, "captured a part was destroyed");
}

// The graph ends before the part, with its stream.
void part_without_graph(Fixture& f) {
  aclrtStream stream = new_stream();
  const Condition condition(stream);
  condition.capture(f.other);
  CHECK_EQ(leaky(f.x, f.y, 8, 1, f.other), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  aclmdlRI part = f.x;
  CHECK_FAILS(aclmdlRICaptureEnd(f.other, &part), 507903, "ended before this part");
  CHECK(part == nullptr);
  CHECK_EQ(leaky(f.x, f.y, 8, 1, f.other), 0);  // no longer in capture
  CHECK_EQ(aclrtSynchronizeStream(f.other), 0);
}

// An update that waits in its stream changes neither another capture of the part nor a graph that
// has ended.
void late_update(Fixture& f) {
  aclrtStream update = new_stream();
  const Condition condition(f.stream);
  aclmdlRI none = nullptr;
  const auto capture = [&](float slope) {
    aclrtTaskGrp group = nullptr;
    condition.capture(f.other);
    CHECK_EQ(aclmdlRICaptureTaskGrpBegin(f.other), 0);
    CHECK_EQ(leaky(f.x, f.y, 8, slope, f.other), 0);
    CHECK_EQ(aclmdlRICaptureTaskGrpEnd(f.other, &group), 0);
    return group;
  };
  const auto change = [&](aclrtTaskGrp group, float slope) {
    CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(update, group), 0);
    CHECK_EQ(leaky(f.x, f.y, 8, slope, update), 0);
    CHECK_EQ(aclmdlRICaptureTaskUpdateEnd(update), 0);
  };
  f.x[0] = -1;
  aclrtTaskGrp group = nullptr;
  {
    Gate gate(update);
    change(capture(3), 5);
    CHECK_EQ(aclrtSynchronizeStream(f.other), 107030);
    CHECK_EQ(aclmdlRICaptureEnd(f.other, &none), 507903);
    group = capture(2);
    CHECK_EQ(end(f.other), condition.part);
  }
  CHECK_EQ(end(f.stream), condition.graph);
  replay(condition.graph, f.stream);
  CHECK_EQ(f.y[0], -2.0f);
  change(group, 7);  // that of the newest capture
  CHECK_EQ(aclrtSynchronizeStream(update), 0);
  replay(condition.graph, f.stream);
  CHECK_EQ(f.y[0], -7.0f);
  {
    Gate gate(update);
    change(group, 9);
    CHECK_EQ(aclmdlRIDestroy(condition.graph), 0);
  }
  CHECK_EQ(f.y[0], -7.0f);
  CHECK_EQ(aclrtDestroyStream(update), 0);
}

// Streams that end during a capture: the origin must have waited for their tasks.
void ends(Fixture& f) {
  aclrtStream stream = new_stream(), other = new_stream();
  aclrtEvent join = new_event();
  aclmdlRI graph = nullptr;
  const auto fork = [&] {
    begin(stream);
    CHECK_EQ(aclrtRecordEvent(f.event, stream), 0);
    CHECK_EQ(aclrtStreamWaitEvent(other, f.event), 0);
    CHECK_EQ(leaky(f.x, f.y, 8, 4, other), 0);
  };
  const auto wait = [&] {
    CHECK_EQ(aclrtRecordEvent(join, other), 0);
    CHECK_EQ(aclrtStreamWaitEvent(stream, join), 0);
  };
  const auto destroy = [&] {
    CHECK_EQ(aclrtDestroyStream(other), 0);
    other = new_stream();
  };
  fork();
  destroy();
  CHECK_FAILS(aclmdlRICaptureEnd(stream, &graph), 507903, "before the origin waited for it");
  fork(), wait();
  CHECK_EQ(leaky(f.x, f.y, 8, 4, other), 0);
  destroy();
  CHECK_FAILS(aclmdlRICaptureEnd(stream, &graph), 507903, "before the origin waited for it");
  fork(), wait();
  CHECK_EQ(aclmdlRICaptureTaskGrpBegin(other), 0);
  destroy();
  CHECK_FAILS(aclmdlRICaptureEnd(stream, &graph), 507903, "open task group");
  fork(), wait();
  destroy();
  CHECK_EQ(leaky(f.y, f.y + 1, 1, 4, stream), 0);
  CHECK_EQ(aclrtStreamWaitEvent(other, join), 0);  // another stream joins
  wait();
  graph = end(stream);
  f.x[0] = -1;
  replay(graph, stream);
  CHECK_EQ(f.y[1], -16.0f);
  CHECK_EQ(aclmdlRIDestroy(graph), 0);

  begin(stream);
  CHECK_EQ(leaky(f.x, f.y, 8, 4, stream), 0);
  CHECK_EQ(aclrtRecordEvent(f.event, stream), 0);
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK_EQ(aclrtSynchronizeEvent(f.event), 0);
  CHECK_EQ(aclrtSynchronizeDevice(), 0);
  CHECK_EQ(aclrtDestroyEvent(join), 0);
  CHECK_EQ(aclrtDestroyStream(other), 0);
}

// The second replay of a graph waits for the first; its stream can be aborted.
void aborted_replay() {
  aclrtStream stream = new_stream(), other = new_stream();
  aclrtEvent ready = nullptr;
  CHECK_EQ(aclrtCreateEventWithFlag(&ready, ACL_EVENT_EXTERNAL), 0);
  float* x = floats(1);
  begin(stream);
  CHECK_EQ(aclrtStreamWaitEvent(stream, ready), 0);
  CHECK_EQ(aclrtLaunchHostFunc(stream, add_one, x), 0);
  aclmdlRI graph = end(stream);
  CHECK_EQ(aclmdlRIExecuteAsync(graph, stream), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK_EQ(aclmdlRIExecuteAsync(graph, other), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK_EQ(aclrtStreamAbort(other), 0);
  CHECK_EQ(x[0], 0.0f);
  CHECK_EQ(aclrtRecordEvent(ready, other), 0);
  CHECK_EQ(aclrtSynchronizeStream(stream), 0);
  CHECK_EQ(x[0], 1.0f);
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
  CHECK_EQ(aclrtDestroyEvent(ready), 0);
  for (aclrtStream own : {stream, other}) CHECK_EQ(aclrtDestroyStream(own), 0);
  CHECK_EQ(aclrtFree(x), 0);
}

// A graph is destroyed while another thread replays it: one of the two is refused.
void destroyed_meanwhile() {
  aclrtStream stream = new_stream(), other = new_stream();
  for (int i = 0; i < 50; ++i) {
    begin(stream);
    aclmdlRI graph = nullptr, part = nullptr;
    aclmdlRICaptureStatus status;
    CHECK_EQ(aclmdlRICaptureGetInfo(stream, &status, &graph), 0);
    aclmdlRICondHandle condition = nullptr;
    CHECK_EQ(
        aclmdlRICondHandleCreate(graph, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &condition), 0);
    CHECK_EQ(aclmdlRIAddCondTask({condition, ACL_MODEL_RI_COND_TYPE_IF, 1, &part}, stream, 0), 0);
    CHECK_EQ(end(stream), graph);
    std::atomic<bool> running = false;
    std::thread replays([&] {
      CHECK_EQ(aclrtSetDevice(0), 0);
      int code = 0;
      while (code == 0) {
        code = aclmdlRIExecuteAsync(graph, other);
        CHECK_EQ(aclrtSynchronizeStream(other), 0);
        running = true;
      }
      CHECK_EQ(code, 107017);
    });
    while (!running) std::this_thread::yield();
    int code = 107037;
    while (code == 107037) code = aclmdlRIDestroy(graph);
    CHECK_EQ(code, 0);
    replays.join();
  }
  for (aclrtStream own : {stream, other}) CHECK_EQ(aclrtDestroyStream(own), 0);
}

}  // namespace

int main() {
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  {
    Fixture fixture;
    too_many_parts(fixture);
    in_each_mode([&] {
      failed_part(fixture);
      executed_part(fixture);
      part_without_stream(fixture);
      part_without_graph(fixture);
      late_update(fixture);
      ends(fixture);
    });
  }
  aborted_replay();
  destroyed_meanwhile();
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclFinalize(), 0);
  return check_result();
}
