// SPDX-License-Identifier: Apache-2.0
// What is refused while a stream is captured, with its status and a sentence.
#include <functional>
#include <thread>

#include "acl/acl_op_compiler.h"
#include "graphs.h"

namespace {

int status_of(aclrtStream stream) {
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  CHECK_EQ(aclmdlRICaptureGetInfo(stream, &status, nullptr), 0);
  return status;
}

// These invalidate the capture.
void forbidden(Fixture& f) {
  float pageable[8] = {};
  const auto nothing = [](void*) {};
  begin(f.stream);
  aclmdlRI graph_before = end(f.stream);
  const struct {
    const char* call;
    int code;
    bool by_mode;  // allowed in mode relaxed
    std::function<int()> run;
  } calls[] = {
      {"aclrtSynchronizeStream", 107030, false, [&] { return aclrtSynchronizeStream(f.stream); }},
      {"aclrtSynchronizeStreamWithTimeout", 107030, false,
       [&] { return aclrtSynchronizeStreamWithTimeout(f.stream, 5); }},
      {"aclrtStreamQuery", 107030, false,
       [&] {
         aclrtStreamStatus status;
         return aclrtStreamQuery(f.stream, &status);
       }},
      {"aclrtSynchronizeDevice", 107030, false, [] { return aclrtSynchronizeDevice(); }},
      {"aclrtSynchronizeEvent", 107030, false, [&] { return aclrtSynchronizeEvent(f.event); }},
      {"aclrtQueryEventStatus", 107030, false,
       [&] {
         aclrtEventRecordedStatus status;
         return aclrtQueryEventStatus(f.event, &status);
       }},
      {"aclrtSynchronizeDeviceWithTimeout", 107030, false,
       [] { return aclrtSynchronizeDeviceWithTimeout(5); }},
      {"aclrtLaunchCallback", 107030, false,
       [&] { return aclrtLaunchCallback(nothing, nullptr, ACL_CALLBACK_NO_BLOCK, f.stream); }},
      {"aclopCompileAndExecute", 107030, false,
       [&] {
         return aclopCompileAndExecute("Identity", 0, nullptr, nullptr, 0, nullptr, nullptr,
                                       nullptr, ACL_ENGINE_SYS, ACL_COMPILE_SYS, nullptr, f.stream);
       }},
      {"aclmdlRIExecuteAsync", 107030, false,
       [&] { return aclmdlRIExecuteAsync(graph_before, f.stream); }},
      {"aclrtMemcpyAsync", 107041, false,
       [&] {
         return aclrtMemcpyAsync(f.x, 32, pageable, 32, ACL_MEMCPY_HOST_TO_DEVICE, f.stream);
       }},
      {"aclrtMemcpyAsync", 107030, true,
       [&] { return aclrtMemcpyAsync(pageable, 32, f.x, 32, ACL_MEMCPY_DEVICE_TO_HOST, f.other); }},
      {"aclrtMemcpy", 107030, true,
       [&] { return aclrtMemcpy(f.x, 32, f.y, 32, ACL_MEMCPY_DEVICE_TO_DEVICE); }},
      {"aclrtMemset", 107030, true, [&] { return aclrtMemset(f.x, 32, 0, 32); }},
      {"aclrtMemcpy2d", 107030, true,
       [&] { return aclrtMemcpy2d(f.x, 8, f.y, 8, 8, 2, ACL_MEMCPY_HOST_TO_DEVICE); }},
  };
  for (const auto& call : calls) {
    for (const auto mode : {kGlobal, kThread, kRelaxed}) {
      const bool allowed = call.by_mode && mode == kRelaxed;
      begin(f.stream, mode);
      CHECK_EQ(leaky(f.x, f.y, 8, 0.5f, f.stream), 0);
      CHECK_EQ(aclrtRecordEvent(f.event, f.stream), 0);
      CHECK_EQ(call.run(), allowed ? 0 : call.code);
      if (!allowed) CHECK_TEXT(std::string(call.call) + ": ");
      CHECK_EQ(status_of(f.stream), allowed ? 1 : 2);
      aclmdlRI graph = f.stream;
      if (allowed) {
        CHECK_EQ(aclmdlRIDestroy(end(f.stream)), 0);
        continue;
      }
      CHECK_FAILS(leaky(f.x, f.y, 8, 0.5f, f.stream), 361001,
                  "the capture of the stream is invalid");
      CHECK_FAILS(aclmdlRICaptureEnd(f.stream, &graph), 507903, call.call);
      CHECK(graph == nullptr);
      CHECK_EQ(status_of(f.stream), 0);
    }
  }
  CHECK_EQ(aclmdlRIDestroy(graph_before), 0);
}

// Modes of other threads, and of the own one.
void modes(Fixture& f) {
  const auto fill = [&](int thread_mode) {
    auto mode = static_cast<aclmdlRICaptureMode>(thread_mode);
    CHECK_EQ(aclmdlRICaptureThreadExchangeMode(&mode), 0);
    const int code = aclrtMemset(f.y, 4, 0, 4);
    CHECK_EQ(aclmdlRICaptureThreadExchangeMode(&mode), 0);
    return code;
  };
  const int allowed[3][2][3] = {
      // own thread, another thread; by the mode of the thread
      {{0, 0, 1}, {0, 1, 1}},  // global
      {{0, 0, 1}, {1, 1, 1}},  // thread-local
      {{1, 1, 1}, {1, 1, 1}},  // relaxed
  };
  for (int mode = 0; mode < 3; ++mode) {
    for (int thread_mode = 0; thread_mode < 3; ++thread_mode) {
      for (const bool another : {false, true}) {
        begin(f.stream, static_cast<aclmdlRICaptureMode>(mode));
        int code = -1;
        if (another) {
          std::thread([&] { code = (aclrtSetDevice(0), fill(thread_mode)); }).join();
        } else {
          code = fill(thread_mode);
        }
        CHECK_EQ(code, allowed[mode][another][thread_mode] ? 0 : 107030);
        aclmdlRI graph = nullptr;
        if (aclmdlRICaptureEnd(f.stream, &graph) == 0) CHECK_EQ(aclmdlRIDestroy(graph), 0);
      }
    }
  }
  auto wrong = static_cast<aclmdlRICaptureMode>(3);
  CHECK_FAILS(aclmdlRICaptureThreadExchangeMode(&wrong), 107000, "mode must be in [0, 2]");
  CHECK_EQ(aclmdlRICaptureThreadExchangeMode(nullptr), 100000);
}

void beginning_and_end(Fixture& f) {
  aclmdlRI graph = nullptr;
  CHECK_FAILS(aclmdlRICaptureBegin(nullptr, kGlobal), 107031, "default stream");
  CHECK_EQ(aclmdlRICaptureBegin(f.stream, static_cast<aclmdlRICaptureMode>(3)), 100000);
  CHECK_EQ(aclmdlRICaptureBegin(f.x, kGlobal), 107017);
  CHECK_FAILS(aclmdlRICaptureEnd(f.stream, &graph), 107029, "not being captured");
  CHECK_EQ(aclmdlRICaptureEnd(f.stream, nullptr), 100000);
  CHECK_EQ(aclmdlRICaptureGetInfo(f.stream, nullptr, nullptr), 100000);
  aclmdlRICaptureStatus status;
  CHECK_EQ(aclmdlRICaptureGetInfo(f.x, &status, nullptr), 107017);
  CHECK_EQ(aclmdlRICaptureGetInfo(nullptr, &status, nullptr), 0);
  begin(f.stream);
  CHECK_FAILS(aclmdlRICaptureBegin(f.stream, kGlobal), 107027, "captured already");
  CHECK_FAILS(leaky(f.x, f.y, 8, 1, nullptr), 361001, "default stream takes no work");
  CHECK_FAILS(aclrtMemsetAsync(f.x, 4, 0, 4, nullptr), 107031, "default stream takes no work");
  aclmdlRI during = nullptr;
  CHECK_EQ(aclmdlRICaptureGetInfo(f.stream, &status, &during), 0);
  CHECK_FAILS(aclmdlRIExecuteAsync(during, f.other), 107026, "still being captured");
  CHECK_EQ(aclmdlRIDestroy(during), 107026);
  std::thread([&] {
    CHECK_EQ(aclrtSetDevice(0), 0);
    if (usual_mode != kRelaxed)
      return CHECK_FAILS(aclmdlRICaptureEnd(f.stream, &graph), 107038, "began the capture");
    CHECK_EQ(aclmdlRIDestroy(end(f.stream)), 0);
  }).join();
  if (usual_mode == kRelaxed) begin(f.stream);
  // A stream that joined and does not come back.
  CHECK_EQ(aclrtRecordEvent(f.event, f.stream), 0);
  CHECK_FAILS(aclrtRecordEvent(f.event, f.other), 107028, "use another event");
  CHECK_FAILS(aclrtStreamWaitEvent(nullptr, f.event), 107031, "default stream");
  CHECK_EQ(aclrtStreamWaitEvent(f.other, f.event), 0);
  CHECK_EQ(aclmdlRICaptureEnd(f.other, &graph), 107036);
  CHECK_FAILS(aclmdlRICaptureEnd(f.stream, &graph), 107025, "the origin does not wait for");
  CHECK_EQ(status_of(f.other), 0);
  // A task after the join.
  begin(f.stream);
  aclrtEvent join = new_event();
  CHECK_EQ(aclrtRecordEvent(f.event, f.stream), 0);
  CHECK_EQ(aclrtStreamWaitEvent(f.other, f.event), 0);
  CHECK_EQ(aclrtRecordEvent(join, f.other), 0);
  CHECK_EQ(aclrtStreamWaitEvent(f.stream, join), 0);
  CHECK_EQ(aclrtMemsetAsync(f.x, 4, 0, 4, f.other), 0);
  CHECK_EQ(aclmdlRICaptureEnd(f.stream, &graph), 107025);
  // Events of other work, and of another capture.
  begin(f.stream);
  CHECK_FAILS(aclrtStreamWaitEvent(f.stream, join), 107024, "not recorded in this capture");
  CHECK_EQ(aclrtRecordEvent(f.event, f.stream), 0);
  begin(f.other);
  CHECK_FAILS(aclrtStreamWaitEvent(f.other, f.event), 107032, "in another capture");
  CHECK_EQ(aclmdlRIDestroy(end(f.other)), 0);
  // Task groups.
  aclrtTaskGrp group = nullptr;
  CHECK_EQ(aclmdlRICaptureTaskGrpBegin(f.other), 107029);
  CHECK_EQ(aclmdlRICaptureTaskGrpEnd(f.stream, &group), 107033);
  CHECK_EQ(aclrtStreamWaitEvent(f.other, f.event), 0);
  CHECK_EQ(aclmdlRICaptureTaskGrpBegin(f.stream), 0);
  CHECK_EQ(aclmdlRICaptureTaskGrpBegin(f.stream), 107033);
  CHECK_FAILS(aclrtMemsetAsync(f.x, 4, 0, 4, f.other), 107034, "open task group");
  CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(f.stream, f.x), 107017);
  CHECK_EQ(aclmdlRICaptureTaskUpdateBegin(f.stream, nullptr), 100000);
  CHECK_FAILS(aclmdlRICaptureEnd(f.stream, &graph), 107033, "a task group is open");
  // An external flag outside.
  CHECK_EQ(aclrtRecordEventWithFlag(join, f.stream, 1), 107029);
  CHECK_EQ(aclrtDestroyEvent(join), 0);
}

}  // namespace

int main() {
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  {
    Fixture fixture;
    forbidden(fixture);
    modes(fixture);
    in_each_mode([&] { beginning_and_end(fixture); });
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclFinalize(), 0);
  return check_result();
}
