// SPDX-License-Identifier: Apache-2.0
// Memory, notifications and events of other processes.
#include <cstring>
#include <string>

#include "two_processes.h"

// Memory cannot be shared where the sanitizer guards its ends.
extern "C" __attribute__((weak)) void __asan_poison_memory_region(const volatile void*, size_t);

namespace {

constexpr size_t kSize = 100'000;
int an_object = 0;
void* const foreign = &an_object;

void memory(uint64_t flags, bool listed) {
  in_two_processes(
      [&](int32_t pid, auto wait) {
        CHECK_EQ(aclrtSetDevice(0), 0);
        void* p = nullptr;
        char key[65] = {}, again[65] = {};
        CHECK_EQ(aclrtMalloc(&p, kSize, ACL_MEM_MALLOC_HUGE_FIRST), 0);
        CHECK_EQ(aclrtMemset(p, kSize, 7, kSize), 0);
        CHECK_EQ(aclrtIpcMemGetExportKey(p, kSize, key, sizeof key, flags), 0);
        CHECK_EQ(aclrtIpcMemGetExportKey(p, kSize, again, sizeof again, flags), 0);
        CHECK_EQ(std::string(key), again);
        if (listed) CHECK_EQ(aclrtIpcMemSetImportPid(key, &pid, 1), 0);
        wait(key);
        CHECK_EQ(static_cast<char*>(p)[5], listed || flags != 0 ? 9 : 7);
        CHECK_EQ(static_cast<char*>(p)[kSize - 1], 7);
        CHECK_EQ(aclrtIpcMemClose(key), 0);
        CHECK_FAILS(aclrtIpcMemClose(key), 107000, "neither exported nor imported");
        CHECK_EQ(aclrtFree(p), 0);
        CHECK_EQ(aclrtResetDevice(0), 0);
      },
      [&](const char* key) {
        void *q = nullptr, *second = nullptr;
        if (!listed && flags == 0) {
          CHECK_FAILS(aclrtIpcMemImportByKey(&q, key, 0), 107000, "is for other processes");
          return;
        }
        CHECK_EQ(aclrtIpcMemImportByKey(&q, key, 0), 0);
        CHECK_FAILS(aclrtIpcMemImportByKey(&second, key, 0), 107000, "has imported key already");
        CHECK_EQ(static_cast<char*>(q)[kSize - 1], 7);
        CHECK_EQ(aclrtMemsetAsync(static_cast<char*>(q) + 5, 1, 9, 1, nullptr), 0);
        CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
        CHECK_FAILS(aclrtFree(q), 107000, "end it with aclrtIpcMemClose");
        CHECK_EQ(aclrtIpcMemClose(key), 0);
      });
}

void refusals() {
  void *p = nullptr, *small = nullptr;
  char key[65];
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtMalloc(&p, kSize, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMalloc(&small, 100, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtIpcMemGetExportKey(nullptr, kSize, key, 65, 0), 100000);
  CHECK_EQ(aclrtIpcMemGetExportKey(p, kSize, nullptr, 65, 0), 100000);
  CHECK_FAILS(aclrtIpcMemGetExportKey(p, kSize, key, 64, 0), 100000, "len must be at least 65");
  CHECK_FAILS(aclrtIpcMemGetExportKey(p, kSize, key, 65, 2), 100000, "flags must be 0 or 1");
  CHECK_FAILS(aclrtIpcMemGetExportKey(static_cast<char*>(p) + 64, 10, key, 65, 0), 107000,
              "is not the start of device memory");
  if (__asan_poison_memory_region == nullptr) {
    CHECK_EQ(aclrtIpcMemGetExportKey(p, 10 * kSize, key, 65, 0), 100000);
    CHECK_FAILS(aclrtIpcMemGetExportKey(small, 100, key, 65, 0), 207000, "allocate at least");
  } else {
    CHECK_FAILS(aclrtIpcMemGetExportKey(p, kSize, key, 65, 0), 207000, "address sanitizer");
  }
  int32_t pid = 1;
  CHECK_EQ(aclrtIpcMemSetImportPid(nullptr, &pid, 1), 100000);
  CHECK_EQ(aclrtIpcMemSetImportPid("unknown", &pid, 1), 107000);
  CHECK_EQ(aclrtIpcMemImportByKey(nullptr, "unknown", 0), 100000);
  CHECK_EQ(aclrtIpcMemImportByKey(&p, nullptr, 0), 100000);
  CHECK_EQ(aclrtIpcMemImportByKey(&small, "unknown", 2), 100000);
  void* q = nullptr;
  CHECK_FAILS(aclrtIpcMemImportByKey(&q, "unknown", 0), 107000, "key is not one that openaclnn");
  CHECK_EQ(aclrtIpcMemImportByKey(&q, "openaclnn-1-0-00000000000000ff", 0), 107000);
  CHECK_EQ(aclrtIpcMemImportByKey(&q, std::string(200, 'x').c_str(), 0), 107000);
  CHECK_EQ(aclrtIpcMemClose(nullptr), 100000);
  CHECK_EQ(aclrtFree(p), 0);
  CHECK_EQ(aclrtFree(small), 0);
  aclrtNotify notify = nullptr, other = nullptr;
  CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
  CHECK_FAILS(aclrtNotifySetImportPid(notify, &pid, 1), 107000, "call aclrtNotifyGetExportKey");
  CHECK_EQ(aclrtNotifyGetExportKey(notify, nullptr, 65, 0), 100000);
  CHECK_EQ(aclrtNotifyGetExportKey(notify, key, 10, 0), 100000);
  CHECK_EQ(aclrtNotifyGetExportKey(notify, key, 65, 1), 100000);
  CHECK_EQ(aclrtNotifyGetExportKey(foreign, key, 65, 0), 107017);
  CHECK_EQ(aclrtNotifyGetExportKey(nullptr, key, 65, 0), 100000);
  CHECK_EQ(aclrtNotifyGetExportKey(notify, key, 65, 0), 0);
  CHECK_EQ(aclrtNotifySetImportPid(notify, nullptr, 1), 100000);
  CHECK_EQ(aclrtNotifySetImportPid(notify, &pid, 0), 100000);
  CHECK_EQ(aclrtNotifySetImportPid(notify, &pid, 1000), 100000);
  CHECK_EQ(aclrtNotifyImportByKey(&other, key, 1), 100000);
  CHECK_EQ(aclrtNotifyImportByKey(&other, "unknown", 0), 107000);
  CHECK_EQ(aclrtNotifyImportByKey(nullptr, key, 0), 100000);
  CHECK_EQ(aclrtNotifyImportByKey(&other, nullptr, 0), 100000);
  CHECK_EQ(aclrtDestroyNotify(notify), 0);
  CHECK_EQ(aclrtNotifyImportByKey(&other, key, 0), 107000);  // not exported any more
  CHECK_EQ(aclrtResetDevice(0), 0);
}

void notifications() {
  in_two_processes(
      [](int32_t pid, auto wait) {
        CHECK_EQ(aclrtSetDevice(0), 0);
        aclrtNotify notify = nullptr;
        aclrtStream stream = nullptr;
        char key[65] = {};
        CHECK_EQ(aclrtCreateStream(&stream), 0);
        CHECK_EQ(aclrtCreateNotify(&notify, 0), 0);
        CHECK_EQ(aclrtNotifyGetExportKey(notify, key, sizeof key, 0), 0);
        CHECK_EQ(aclrtNotifySetImportPid(notify, &pid, 1), 0);
        CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 20), 0);
        aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
        CHECK_EQ(aclrtStreamQuery(stream, &status), 0);
        CHECK_EQ(status, ACL_STREAM_STATUS_NOT_READY);
        wait(key);
        CHECK_EQ(aclrtSynchronizeStream(stream), 0);
        CHECK_EQ(aclrtWaitAndResetNotify(notify, stream, 1), 0);
        CHECK_EQ(aclrtSynchronizeStream(stream), 107020);  // consumed
        CHECK_EQ(aclrtDestroyNotify(notify), 0);
        CHECK_EQ(aclrtDestroyStream(stream), 0);
        CHECK_EQ(aclrtResetDevice(0), 0);
      },
      [](const char* key) {
        aclrtNotify notify = nullptr;
        CHECK_EQ(aclrtNotifyImportByKey(&notify, key, 0), 0);
        CHECK_EQ(aclrtRecordNotify(notify, nullptr), 0);
        CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
        CHECK_EQ(aclrtDestroyNotify(notify), 0);
      });
}

// The stream of one process waits for a record of the other.
void events() {
  in_two_processes(
      [](int32_t, auto wait) {
        CHECK_EQ(aclrtSetDevice(0), 0);
        aclrtEvent event = nullptr;
        aclrtStream stream = nullptr, gate = nullptr;
        CHECK_EQ(aclrtCreateStream(&stream), 0);
        CHECK_EQ(aclrtCreateStream(&gate), 0);
        CHECK_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_IPC), 0);
        CHECK_EQ(aclrtStreamWaitEvent(stream, event), 0);  // not recorded: nothing to wait for
        CHECK_EQ(aclrtSynchronizeEvent(event), 0);
        int hold[2];
        CHECK_EQ(pipe(hold), 0);
        const auto wait_there = [](void* end) {
          char byte;
          CHECK_EQ(read(*static_cast<int*>(end), &byte, 1), ssize_t{1});
        };
        CHECK_EQ(aclrtLaunchHostFunc(gate, wait_there, &hold[0]), 0);
        CHECK_EQ(aclrtRecordEvent(event, gate), 0);
        CHECK_EQ(aclrtStreamWaitEvent(stream, event), 0);
        aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_COMPLETE;
        CHECK_EQ(aclrtQueryEventStatus(event, &recorded), 0);
        CHECK_EQ(recorded, ACL_EVENT_RECORDED_STATUS_NOT_READY);
        CHECK_FAILS(aclrtSynchronizeEventWithTimeout(event, 1), ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
                    "not reached within 1 ms");
        aclrtIpcEventHandle handle;
        CHECK_EQ(aclrtIpcGetEventHandle(event, &handle), 0);
        char key[65] = {};
        std::memcpy(key, handle.reserved, sizeof handle.reserved);
        CHECK_EQ(write(hold[1], "", 1), ssize_t{1});
        wait(key);  // the other process waits for this record, and records another
        CHECK_EQ(aclrtSynchronizeStream(stream), 0);
        CHECK_EQ(aclrtSynchronizeEvent(event), 0);
        float ms;
        CHECK_EQ(aclrtEventElapsedTime(&ms, event, event), 107006);
        aclmdlRI graph = nullptr;
        CHECK_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 0);
        CHECK_EQ(aclrtRecordEvent(event, stream), 107030);
        CHECK_EQ(aclrtStreamWaitEvent(stream, event), 107030);
        CHECK_EQ(aclmdlRICaptureEnd(stream, &graph), 0);
        CHECK_EQ(aclmdlRIDestroy(graph), 0);
        CHECK_EQ(aclrtDestroyEvent(event), 0);
        for (aclrtStream one : {stream, gate}) CHECK_EQ(aclrtDestroyStream(one), 0);
        for (const int end : hold) close(end);
        CHECK_EQ(aclrtResetDevice(0), 0);
      },
      [](const char* key) {
        aclrtIpcEventHandle handle;
        std::memcpy(handle.reserved, key, sizeof handle.reserved);
        aclrtEvent event = nullptr;
        CHECK_EQ(aclrtIpcOpenEventHandle(handle, &event), 0);
        CHECK_EQ(aclrtSynchronizeEvent(event), 0);
        CHECK_EQ(aclrtStreamWaitEvent(nullptr, event), 0);
        CHECK_EQ(aclrtRecordEvent(event, nullptr), 0);
        CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
        aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_NOT_READY;
        CHECK_EQ(aclrtQueryEventStatus(event, &recorded), 0);
        CHECK_EQ(recorded, ACL_EVENT_RECORDED_STATUS_COMPLETE);
        CHECK_EQ(aclrtDestroyEvent(event), 0);
      });
}

void refused_events() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  aclrtEvent event = nullptr;
  aclrtIpcEventHandle handle = {};
  CHECK_EQ(aclrtCreateEventWithFlag(&event, ACL_EVENT_IPC), 107000);
  CHECK_EQ(aclrtCreateEvent(&event), 0);
  CHECK_FAILS(aclrtIpcGetEventHandle(event, &handle), 107000, "with ACL_EVENT_IPC");
  CHECK_EQ(aclrtIpcGetEventHandle(event, nullptr), 100000);
  CHECK_EQ(aclrtIpcGetEventHandle(nullptr, &handle), 100000);
  CHECK_EQ(aclrtIpcGetEventHandle(foreign, &handle), 107017);
  CHECK_EQ(aclrtDestroyEvent(event), 0);
  CHECK_EQ(aclrtIpcOpenEventHandle(handle, nullptr), 100000);
  CHECK_EQ(aclrtIpcOpenEventHandle(handle, &event), 107000);
  std::memset(handle.reserved, 'x', sizeof handle.reserved);
  CHECK_EQ(aclrtIpcOpenEventHandle(handle, &event), 107000);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

}  // namespace

int main() {
  if (__asan_poison_memory_region == nullptr) {
    memory(ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT, true);
    memory(ACL_RT_IPC_MEM_EXPORT_FLAG_DEFAULT, false);
    memory(ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION, false);
  }
  notifications();
  events();
  refusals();
  refused_events();
  return check_result();
}
