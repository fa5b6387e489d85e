// SPDX-License-Identifier: Apache-2.0
// Handles and addresses that are none, in every function of graphs: refused, and never a crash.
#include <cstdint>
#include <functional>

#include "acl/acl_mdl.h"
#include "graphs.h"

namespace {

void handles(Fixture& f) {
  for (void* wrong : {static_cast<void*>(nullptr), static_cast<void*>(f.x), f.stream}) {
    const int code = wrong == nullptr ? 100000 : 107017;
    CHECK_EQ(aclmdlRIExecuteAsync(wrong, f.stream), code);
    CHECK_EQ(aclmdlRIExecute(wrong, -1), code);
    CHECK_EQ(aclmdlRIDestroy(wrong), code);
    CHECK_EQ(aclmdlRIDebugPrint(wrong), code);
    CHECK_EQ(aclmdlRIDebugJsonPrint(wrong, "x", 0), code);
    CHECK_EQ(aclmdlRICondHandleGetCondPtr(wrong, nullptr), code);
  }
  begin(f.stream);
  CHECK_EQ(leaky(f.x, f.y, 8, 1, f.stream), 0);
  aclmdlRI graph = end(f.stream);
  CHECK_EQ(aclmdlRIExecute(graph, 0), 107000);
  CHECK_EQ(aclmdlRIExecute(graph, 1000), 0);
  CHECK_EQ(aclmdlRIDebugJsonPrint(graph, "/no such directory/x", 0), 107000);
  CHECK_EQ(aclmdlRIDebugJsonPrint(graph, nullptr, 0), 100000);
  CHECK_EQ(aclmdlRIExecuteAsync(graph, f.x), 107017);
  CHECK_EQ(aclmdlRIDestroy(graph), 0);
}

using Call = std::function<int(void*)>;

// Functions of graphs with one wrong argument.
std::vector<Call> calls_with_wrong(aclrtStream stream, aclmdlRI graph,
                                   aclmdlRICondHandle condition) {
  static aclmdlRI made = nullptr, part = nullptr;
  static aclrtTaskGrp group = nullptr;
  static aclmdlRICondHandle handle = nullptr;
  static uint64_t* value = nullptr;
  static uint32_t number = 0;
  static char name[8] = "";
  const auto nothing = [](void*) {};
  const auto head = ACL_MODEL_STREAM_FLAG_HEAD;
  return {
      [](void* p) { return aclmdlRICaptureBegin(p, kGlobal); },
      [](void* p) { return aclmdlRICaptureEnd(p, &made); },
      [](void* p) { return aclmdlRICaptureTaskGrpBegin(p); },
      [](void* p) { return aclmdlRICaptureTaskGrpEnd(p, &group); },
      [](void* p) { return aclmdlRICaptureTaskUpdateBegin(p, p); },
      [=](void* p) { return aclmdlRICaptureTaskUpdateBegin(stream, p); },
      [](void* p) { return aclmdlRICaptureTaskUpdateEnd(p); },
      [=](void* p) { return aclmdlRICaptureToModelRIBegin(p, graph, kGlobal); },
      [=](void* p) { return aclmdlRICaptureToModelRIBegin(stream, p, kGlobal); },
      [](void* p) {
        return aclmdlRICondHandleCreate(p, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &handle);
      },
      [](void* p) { return aclmdlRICondHandleGetCondPtr(p, &value); },
      [=](void* p) {
        return aclmdlRIAddCondTask({p, ACL_MODEL_RI_COND_TYPE_IF, 1, &part}, stream, 0);
      },
      [=](void* p) {
        return aclmdlRIAddCondTask({condition, ACL_MODEL_RI_COND_TYPE_IF, 1, &part}, p, 0);
      },
      [=](void* p) { return aclmdlRIExecuteAsync(p, stream); },
      [](void* p) { return aclmdlRIExecute(p, 1000); },
      [](void* p) { return aclmdlRIDestroy(p); },
      [=](void* p) { return aclmdlRIDestroyRegisterCallback(p, nothing, nullptr); },
      [=](void* p) { return aclmdlRIDestroyUnregisterCallback(p, nothing); },
      [](void* p) { return aclmdlRIGetId(p, &number); },
      [](void* p) { return aclmdlRISetName(p, "graph"); },
      [](void* p) { return aclmdlRIGetName(p, sizeof name, name); },
      [](void* p) { return aclmdlRIDebugPrint(p); },
      [](void* p) { return aclmdlRIDebugJsonPrint(p, "/dev/null", 0); },
      [=](void* p) { return aclmdlRIBindStream(p, stream, head); },
      [=](void* p) { return aclmdlRIBindStream(graph, p, head); },
      [=](void* p) { return aclmdlRIUnbindStream(p, stream); },
      [=](void* p) { return aclmdlRIUnbindStream(graph, p); },
      [=](void* p) { return aclmdlRIEndTask(p, stream); },
      [](void* p) { return aclmdlRIBuildEnd(p, nullptr); },
      [=](void* p) { return aclrtActiveStream(p, stream); },
      [=](void* p) { return aclrtActiveStream(stream, p); },
  };
}

// Without a capture, and during one, which goes on.
void garbage(Fixture& f) {
  aclrtStream stale_stream = new_stream();
  CHECK_EQ(aclrtDestroyStream(stale_stream), 0);
  begin(f.other);
  aclmdlRI stale_graph = end(f.other);
  CHECK_EQ(aclmdlRIDestroy(stale_graph), 0);
  int own = 0;
  void* const wrong[] = {nullptr,
                         reinterpret_cast<void*>(1),
                         reinterpret_cast<void*>(UINTPTR_MAX),
                         &own,
                         f.x,
                         f.event,
                         stale_stream,
                         stale_graph,
                         static_cast<char*>(f.stream) + 8};
  for (const bool during : {false, true}) {
    aclmdlRI graph = nullptr;
    aclmdlRICondHandle condition = nullptr;
    aclmdlRICaptureStatus status;
    begin(f.stream);
    if (!during)
      graph = end(f.stream);
    else
      CHECK_EQ(aclmdlRICaptureGetInfo(f.stream, &status, &graph), 0);
    CHECK_EQ(
        aclmdlRICondHandleCreate(graph, 1, ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT, &condition), 0);
    const std::vector<Call> calls = calls_with_wrong(f.stream, graph, condition);
    for (size_t i = 0; i < calls.size(); ++i) {
      for (void* p : wrong) {
        if (calls[i](p) == 0) {
          std::fprintf(stderr, "call %zu accepts %p\n", i, p);
          CHECK(false);
        }
      }
    }
    if (during) CHECK_EQ(end(f.stream), graph);
    replay(graph, f.stream);
    CHECK_EQ(aclmdlRIDestroy(graph), 0);
  }
}

}  // namespace

int main() {
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  {
    Fixture fixture;
    in_each_mode([&] {
      handles(fixture);
      garbage(fixture);
    });
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclFinalize(), 0);
  return check_result();
}
