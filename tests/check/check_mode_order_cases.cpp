// SPDX-License-Identifier: Apache-2.0
// Streams that notifications, values and host functions order, with mistakes and without. The
// argument names the case; tests/check/test_cases.py knows what is reported for each.
#include <map>
#include <string>

#include "../../examples/mistakes/mistake.h"

namespace {

struct Pair {
  aclrtStream a = make_stream(), b = make_stream();
  float* x = device_memory(kBytes);
  aclrtNotify notify = nullptr;

  Pair() { must(aclrtCreateNotify(&notify, 0)); }
  ~Pair() {
    must(aclrtSynchronizeDevice());
    must(aclrtDestroyNotify(notify));
    must(aclrtFree(x));
    must(aclrtDestroyStream(a));
    must(aclrtDestroyStream(b));
  }
  void write(aclrtStream stream, int value) {
    must(aclrtMemsetAsync(x, kBytes, value, kBytes, stream));
  }
};

void ordered_by_a_notification() {
  Pair own;
  own.write(own.a, 1);
  must(aclrtRecordNotify(own.notify, own.a));
  must(aclrtWaitAndResetNotify(own.notify, own.b, 0));
  own.write(own.b, 2);
}

void ordered_by_a_later_record() {
  Pair own;
  must(aclrtWaitAndResetNotify(own.notify, own.b, 0));
  own.write(own.b, 2);
  own.write(own.a, 1);
  must(aclrtRecordNotify(own.notify, own.a));
  own.write(own.b, 3);
}

void a_notification_is_consumed() {  // the second wait knows nothing of the first record
  Pair own;
  must(aclrtRecordNotify(own.notify, own.a));
  own.write(own.a, 1);
  must(aclrtWaitAndResetNotify(own.notify, own.b, 0));
  own.write(own.b, 2);
}

void ordered_by_a_value() {
  Pair own;
  void* value = device_memory(64);
  own.write(own.a, 1);
  must(aclrtValueWrite(value, 1, 0, own.a));
  must(aclrtValueWait(value, 1, ACL_STREAM_WAIT_VALUE_EQ, own.b));
  own.write(own.b, 2);
  must(aclrtSynchronizeDevice());
  must(aclrtFree(value));
}

void a_reduction_not_ordered() {
  Pair own;
  float* y = device_memory(kBytes);
  own.write(own.a, 0);
  must(aclrtReduceAsync(own.x, y, kBytes, ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, ACL_FLOAT, own.b,
                        nullptr));
  must(aclrtSynchronizeDevice());
  must(aclrtFree(y));
}

void memory_freed_behind_a_wait() {
  Pair own;
  void* y = device_memory(kBytes);
  must(aclrtWaitAndResetNotify(own.notify, own.b, 0));
  must(aclrtMemsetAsync(y, kBytes, 1, kBytes, own.b));
  must(aclrtRecordNotify(own.notify, own.a));
  must(aclrtFree(y));
}

void notification_left() {
  aclrtNotify notify = nullptr;
  must(aclrtCreateNotify(&notify, 0));
}

void notification_destroyed() {
  aclrtNotify notify = nullptr;
  must(aclrtCreateNotify(&notify, 0));
  must(aclrtDestroyNotify(notify));
  aclrtRecordNotify(notify, nullptr);
}

void managed_memory() {  // the host may read it
  void* p = nullptr;
  must(aclrtMemAllocManaged(&p, 64, ACL_RT_MEM_ATTACH_GLOBAL));
  must(aclrtMemset(p, 64, 1, 64));
  must(static_cast<char*>(p)[3] == 1 ? 0 : 1);
  must(aclrtMemcpy(p, 8, static_cast<char*>(p) + 32, 8, ACL_MEMCPY_HOST_TO_DEVICE));
  must(aclrtFree(p));
}

// A graph that writes on stream a, which did not run while it was recorded.
aclmdlRI graph_of_a_write(Pair& own) {
  aclmdlRI graph = nullptr;
  must(aclmdlRICaptureBegin(own.a, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  own.write(own.a, 1);
  must(aclmdlRICaptureEnd(own.a, &graph));
  own.write(own.b, 2);
  return graph;
}

void replays_in_order() {
  Pair own;
  aclmdlRI graph = graph_of_a_write(own);
  for (int i = 0; i < 3; ++i) must(aclmdlRIExecuteAsync(graph, own.b));
  own.write(own.b, 3);
  must(aclrtSynchronizeStream(own.b));
  must(aclmdlRIDestroy(graph));
}

void a_replay_not_ordered() {
  Pair own;
  aclmdlRI graph = graph_of_a_write(own);
  must(aclmdlRIExecuteAsync(graph, own.a));
  must(aclrtSynchronizeDevice());
  must(aclmdlRIDestroy(graph));
}

void a_replay_of_freed_memory() {
  Pair own;
  void* p = nullptr;
  aclmdlRI graph = nullptr;
  must(aclrtMalloc(&p, 4000, ACL_MEM_MALLOC_HUGE_FIRST));
  must(aclmdlRICaptureBegin(own.a, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  must(aclrtMemsetAsync(p, 4000, 1, 4000, own.a));
  must(aclmdlRICaptureEnd(own.a, &graph));
  must(aclmdlRIExecute(graph, -1));
  must(aclrtFree(p));
  must(aclmdlRIExecute(graph, -1));
  must(aclmdlRIDestroy(graph));
}

void graph_left() {
  Pair own;
  (void)graph_of_a_write(own);
}

const std::map<std::string, void (*)()> cases = {
    {"replays_in_order", replays_in_order},
    {"a_replay_not_ordered", a_replay_not_ordered},
    {"a_replay_of_freed_memory", a_replay_of_freed_memory},
    {"graph_left", graph_left},
    {"ordered_by_a_notification", ordered_by_a_notification},
    {"ordered_by_a_later_record", ordered_by_a_later_record},
    {"a_notification_is_consumed", a_notification_is_consumed},
    {"ordered_by_a_value", ordered_by_a_value},
    {"a_reduction_not_ordered", a_reduction_not_ordered},
    {"memory_freed_behind_a_wait", memory_freed_behind_a_wait},
    {"notification_left", notification_left},
    {"notification_destroyed", notification_destroyed},
    {"managed_memory", managed_memory},
};

}  // namespace

int main(int, char** words) {
  begin();
  cases.at(words[1])();
  end();
  return 0;
}
