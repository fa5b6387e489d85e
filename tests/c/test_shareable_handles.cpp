// SPDX-License-Identifier: Apache-2.0
// Physical memory of other processes: what is mapped stays mapped at the export, both processes
// see what either writes, and what is refused.
#include <cstdlib>
#include <cstring>

#include "two_processes.h"
#include "virtual_memory.h"

namespace {

constexpr auto kNone = ACL_MEM_HANDLE_TYPE_NONE;
constexpr auto kDefault = ACL_MEM_SHARE_HANDLE_TYPE_DEFAULT;
constexpr uint64_t kAny = ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION;

template <class Enumeration>
Enumeration none(int value) {
  Enumeration made;
  std::memcpy(&made, &value, sizeof made);
  return made;
}

uint64_t number_in(const char* key) {
  uint64_t number;
  std::memcpy(&number, key, sizeof number);
  return number;
}

// Mapped twice before the export and once after it; `second`: the V2 functions.
void share(bool second, uint64_t flags, bool listed) {
  in_two_processes(
      [&](int32_t pid, auto wait) {
        CHECK_EQ(aclrtSetDevice(0), 0);
        char* base = reserve(3 * kGranule);
        const aclrtDrvMemHandle handle = physical(kGranule);
        for (int i = 0; i < 2; ++i)
          CHECK_EQ(aclrtMapMem(base + i * kGranule, kGranule, 0, handle, 0), 0);
        base[7] = 1;
        base[2 * kGranule - 1] = 2;
        char key[65] = {};
        uint64_t number = 0;
        CHECK_EQ(second ? aclrtMemExportToShareableHandleV2(handle, flags, kDefault, &number)
                        : aclrtMemExportToShareableHandle(handle, kNone, flags, &number),
                 0);
        CHECK_FAILS(aclrtMemExportToShareableHandle(handle, kNone, flags, &number), 107000,
                    "handle was exported already");
        if (listed) {
          CHECK_EQ(second ? aclrtMemSetPidToShareableHandleV2(&number, kDefault, &pid, 1)
                          : aclrtMemSetPidToShareableHandle(number, &pid, 1),
                   0);
        }
        CHECK_EQ(aclrtMapMem(base + 2 * kGranule, kGranule, 0, handle, 0), 0);
        base[8] = 3;  // in all three
        for (int i = 0; i < 3; ++i) {
          const char* place = base + i * kGranule;
          CHECK(place[7] == 1 && place[8] == 3 && place[kGranule - 1] == 2);
        }
        std::memcpy(key, &number, sizeof number);
        wait(key);
        const bool allowed = listed || flags == kAny;
        for (int i = 0; i < 3; ++i) CHECK_EQ(base[i * kGranule + 9], allowed ? 4 : 0);
        CHECK_EQ(aclrtUnmapMem(base), 0);
        CHECK_EQ(aclrtFreePhysical(handle), 0);
        CHECK_EQ(base[kGranule + 8], 3);  // mapped still
        for (int i = 1; i < 3; ++i) CHECK_EQ(aclrtUnmapMem(base + i * kGranule), 0);
        CHECK_EQ(aclrtReleaseMemAddress(base), 0);
        aclrtDrvMemHandle late = nullptr;
        CHECK_FAILS(aclrtMemImportFromShareableHandle(number, 0, &late), 107000,
                    "is not exported any more");
        CHECK_EQ(aclrtResetDevice(0), 0);
      },
      [&](const char* key) {
        uint64_t number = number_in(key);
        aclrtDrvMemHandle handle = nullptr;
        size_t before = 0, after = 0, total = 0;
        CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total), 0);
        const aclError got =
            second ? aclrtMemImportFromShareableHandleV2(&number, kDefault, 0, &handle)
                   : aclrtMemImportFromShareableHandle(number, 0, &handle);
        if (!listed && flags != kAny) {
          CHECK_EQ(got, 107000);
          CHECK(handle == nullptr);
          return;
        }
        CHECK_EQ(got, 0);
        CHECK_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total), 0);
        CHECK_EQ(before, after);  // the other process pays
        uint64_t again = 0;
        CHECK_FAILS(aclrtMemExportToShareableHandle(handle, kNone, 0, &again), 107000,
                    "handle was imported, so it is shared already");
        int32_t pid = 1;
        CHECK_FAILS(aclrtMemSetPidToShareableHandle(number, &pid, 1), 107000, "did not export");
        char* base = reserve(kGranule);
        CHECK_EQ(aclrtMapMem(base, kGranule, 0, handle, 0), 0);
        CHECK(base[7] == 1 && base[8] == 3 && base[kGranule - 1] == 2);
        CHECK_EQ(aclrtMemsetAsync(base + 9, 1, 4, 1, nullptr), 0);
        CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
        CHECK_EQ(aclrtFreePhysical(handle), 0);
        CHECK_EQ(aclrtFreePhysical(handle), 107017);
        CHECK_EQ(base[9], 4);
        CHECK_EQ(aclrtUnmapMem(base), 0);
        CHECK_EQ(aclrtReleaseMemAddress(base), 0);
      });
}

void refusals() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  aclrtDrvMemHandle handle = physical(kGranule), other = nullptr;
  uint64_t number = 0;
  int32_t pid = 1;
  int object = 0;
  CHECK_EQ(aclrtMemExportToShareableHandle(nullptr, kNone, 0, &number), 100000);
  CHECK_EQ(aclrtMemExportToShareableHandle(handle, kNone, 0, nullptr), 100000);
  CHECK_EQ(aclrtMemExportToShareableHandle(&object, kNone, 0, &number), 107017);
  CHECK_FAILS(aclrtMemExportToShareableHandle(handle, kNone, 2, &number), 100000,
              "flags must be 0 or 1, but got 2");
  CHECK_FAILS(aclrtMemExportToShareableHandle(handle, ACL_MEM_HANDLE_TYPE_POSIX, 0, &number),
              100000, "handleType must be ACL_MEM_HANDLE_TYPE_NONE, 0, but got 2");
  CHECK_FAILS(
      aclrtMemExportToShareableHandleV2(handle, 0, ACL_MEM_SHARE_HANDLE_TYPE_FABRIC, &number),
      207000, "memory is not shared between servers");
  const auto wrong = none<aclrtMemSharedHandleType>(3);
  CHECK_FAILS(aclrtMemExportToShareableHandleV2(handle, 0, wrong, &number), 100000,
              "shareType must be 1 or 2, but got 3");
  CHECK_EQ(aclrtMemImportFromShareableHandleV2(&number, wrong, 0, &other), 100000);
  CHECK_EQ(aclrtMemSetPidToShareableHandleV2(&number, wrong, &pid, 1), 100000);
  CHECK_EQ(aclrtMemExportToShareableHandleV2(handle, 0, kDefault, nullptr), 100000);
  CHECK_EQ(aclrtMemImportFromShareableHandleV2(nullptr, kDefault, 0, &other), 100000);
  CHECK_EQ(aclrtMemSetPidToShareableHandleV2(nullptr, kDefault, &pid, 1), 100000);
  CHECK_EQ(number, 0u);
  for (const uint64_t forged : {uint64_t{0}, uint64_t{1}, UINT64_MAX, uint64_t{1} << 63}) {
    CHECK_EQ(aclrtMemImportFromShareableHandle(forged, 0, &other), 107000);
    CHECK_EQ(aclrtMemSetPidToShareableHandle(forged, &pid, 1), 107000);
  }
  CHECK_EQ(aclrtMemExportToShareableHandle(handle, kNone, 0, &number), 0);
  CHECK(number != 0);
  CHECK_EQ(aclrtMemImportFromShareableHandle(number ^ 1, 0, &other), 107000);  // another token
  CHECK_FAILS(aclrtMemImportFromShareableHandle(number, 0, &other), 107000, "is of this process");
  CHECK_EQ(aclrtMemImportFromShareableHandle(number, 0, nullptr), 100000);
  CHECK_EQ(aclrtMemImportFromShareableHandle(number, -1, &other), 107001);
  CHECK_EQ(aclrtMemImportFromShareableHandle(number, 99, &other), 107001);
  CHECK_EQ(aclrtMemImportFromShareableHandleV2(&number, kDefault, 1, &other), 107000);
  CHECK_EQ(aclrtMemSetPidToShareableHandle(number, nullptr, 1), 100000);
  CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &pid, 0), 100000);
  CHECK_EQ(aclrtMemSetPidToShareableHandle(number, &pid, SIZE_MAX), 100000);
  CHECK(other == nullptr);
  CHECK_EQ(aclrtFreePhysical(handle), 0);
  CHECK_EQ(aclrtMemExportToShareableHandle(handle, kNone, 0, &number), 107017);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

}  // namespace

int main() {
  setenv("OPENACLNN_DEVICE_MEMORY", "1GiB", 1);  // else free memory is the machine's
  for (const bool second : {false, true}) {
    share(second, ACL_RT_VMM_EXPORT_FLAG_DEFAULT, true);
    share(second, ACL_RT_VMM_EXPORT_FLAG_DEFAULT, false);
    share(second, kAny, false);
  }
  refusals();
  return check_result();
}
