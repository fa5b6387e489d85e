// SPDX-License-Identifier: Apache-2.0
// Dumps and profiling of the older interface.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "acl/acl_dump.h"
#include "acl/acl_op.h"
#include "acl/acl_prof.h"
#include "check.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

int32_t receive(const acldumpChunk*, int32_t) { return 0; }

void dumps(const std::string& folder) {
  CHECK_EQ(acldumpRegCallback(receive, 0), 0);
  CHECK_EQ(acldumpRegCallback(receive, 1), 100000);
  CHECK_EQ(acldumpRegCallback(nullptr, 0), 100000);
  acldumpUnregCallback();
  CHECK_FAILS(aclopStopDumpArgs(ACL_OP_DUMP_OP_AICORE_ARGS), 100045,
              "call aclopStartDumpArgs first");
  CHECK_EQ(aclopStartDumpArgs(ACL_OP_DUMP_OP_AICORE_ARGS, folder.c_str()), 0);
  CHECK_EQ(aclopStopDumpArgs(ACL_OP_DUMP_OP_AICORE_ARGS), 0);
  CHECK_EQ(aclopStartDumpArgs(2, folder.c_str()), 100000);
  CHECK_EQ(aclopStartDumpArgs(1, nullptr), 100000);
  CHECK_EQ(aclopStartDumpArgs(1, "/no/such/folder"), 100000);
  CHECK_EQ(aclopStopDumpArgs(2), 100000);
  char path[64];
  CHECK(acldumpGetPath(DATA_DUMP) == nullptr);
  CHECK_EQ(acldumpGetExceptionInfoPath(path, sizeof path), 100045);
  CHECK_EQ(acldumpGetExceptionInfoPath(nullptr, sizeof path), 100000);
  CHECK_EQ(acldumpSaveExceptionInfo("f", "t", nullptr, 0), 100045);
  CHECK_EQ(acldumpSaveExceptionInfo(nullptr, "t", nullptr, 0), 100000);
}

void profiling(const std::string& folder) {
  const char* path = folder.c_str();
  uint32_t devices[] = {0}, wrong[] = {9}, range = 0;
  const auto metrics = ACL_AICORE_PIPE_UTILIZATION;
  CHECK_EQ(aclprofFinalize(), 100043);
  CHECK_FAILS(aclprofInit(path, 3), 100000, "the length must be that of profilerResultPath");
  CHECK_EQ(aclprofInit(nullptr, 3), 100000);
  CHECK_EQ(aclprofInit("/no/such/folder", 15), 500005);
  aclprofConfig* config = aclprofCreateConfig(devices, 1, metrics, nullptr, ACL_PROF_ACL_API);
  CHECK(config != nullptr);
  CHECK_FAILS(aclprofStart(config), 100043, "call aclprofInit first");
  CHECK_EQ(aclprofInit(path, folder.size()), 0);
  CHECK_EQ(aclprofInit(path, folder.size()), 100042);
  CHECK(aclprofCreateStamp() == nullptr);
  CHECK_EQ(aclprofStart(config), 0);
  CHECK_EQ(aclprofStart(config), 100042);
  CHECK_EQ(aclprofStart(nullptr), 100000);
  void* stamp = aclprofCreateStamp();
  CHECK(stamp != nullptr);
  CHECK_EQ(aclprofSetStampTraceMessage(stamp, "hello", 5), 0);
  CHECK_EQ(aclprofSetStampTraceMessage(stamp, nullptr, 5), 200006);
  CHECK_EQ(aclprofMark(stamp), 0);
  CHECK_EQ(aclprofMark(nullptr), 200006);
  CHECK_EQ(aclprofPop(), 200006);
  CHECK_EQ(aclprofPush(stamp), 0);
  CHECK_EQ(aclprofPop(), 0);
  CHECK_EQ(aclprofRangeStart(stamp, &range), 0);
  CHECK_EQ(aclprofRangeStart(stamp, nullptr), 200006);
  CHECK_EQ(aclprofRangeStop(range), 0);
  CHECK_EQ(aclprofRangeStop(range), 200006);
  CHECK_EQ(aclprofMarkEx("m", 1, nullptr), 0);
  CHECK_EQ(aclprofMarkEx(nullptr, 1, nullptr), 100000);
  CHECK_EQ(aclprofMarkEx("m", 1, foreign), 107017);
  aclprofDestroyStamp(stamp);
  CHECK_EQ(aclprofPush(stamp), 200006);
  aclprofStepInfo* step = aclprofCreateStepInfo();
  CHECK_EQ(aclprofGetStepTimestamp(step, ACL_STEP_START, nullptr), 0);
  CHECK_EQ(aclprofGetStepTimestamp(step, static_cast<aclprofStepTag>(2), nullptr), 100000);
  CHECK_EQ(aclprofGetStepTimestamp(nullptr, ACL_STEP_START, nullptr), 100000);
  aclprofDestroyStepInfo(step);
  CHECK_EQ(aclprofGetStepTimestamp(step, ACL_STEP_END, nullptr), 100000);
  char from[8] = {}, to[8] = {};
  const auto within = ACL_MEMCPY_DEVICE_TO_DEVICE;
  CHECK_EQ(aclrtMemcpyAsync(to, 8, from, 8, within, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK_EQ(aclprofStop(config), 0);
  CHECK_EQ(aclprofStop(config), 100043);
  int copies = 0, marks = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);) {
      copies += line.find("aclrtMemcpyAsync") != std::string::npos;
      marks += entry.path().filename() == "marks.tsv";
    }
  }
  CHECK_EQ(copies, 1);
  CHECK_EQ(marks, 4);                                              // Mark, Pop, RangeStop, MarkEx
  CHECK_EQ(aclrtMemcpyAsync(to, 8, from, 8, within, nullptr), 0);  // not recorded
  CHECK_EQ(aclprofFinalize(), 0);
  CHECK_EQ(aclprofDestroyConfig(config), 0);
  CHECK_EQ(aclprofDestroyConfig(config), 100000);
  CHECK_EQ(aclprofDestroyConfig(nullptr), 100000);
  CHECK(aclprofCreateConfig(wrong, 1, metrics, nullptr, 0) == nullptr);
  CHECK(aclprofCreateConfig(nullptr, 1, metrics, nullptr, 0) == nullptr);
  CHECK(aclprofCreateConfig(devices, 1, static_cast<aclprofAicoreMetrics>(9), nullptr, 0) ==
        nullptr);
  CHECK_EQ(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, "200MB", 5), 0);
  CHECK_EQ(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, "200MB", 4), 100000);
  CHECK_EQ(aclprofSetConfig(ACL_PROF_ARGS_MAX, "200MB", 5), 100000);
  CHECK_EQ(aclprofSetConfig(ACL_PROF_STORAGE_LIMIT, nullptr, 5), 100000);
  aclprofSubscribeConfig* subscribed = aclprofCreateSubscribeConfig(1, ACL_AICORE_NONE, nullptr);
  CHECK_EQ(aclprofModelSubscribe(1, subscribed), 100011);
  CHECK_EQ(aclprofModelUnSubscribe(1), 100011);
  CHECK_EQ(aclprofDestroySubscribeConfig(subscribed), 0);
  CHECK_EQ(aclprofDestroySubscribeConfig(subscribed), 100000);
  CHECK(aclprofCreateSubscribeConfig(2, ACL_AICORE_NONE, nullptr) == nullptr);
  size_t size = 0;
  uint32_t count = 9;
  CHECK_EQ(aclprofGetOpDescSize(&size), 0);
  CHECK(size > 0);
  CHECK_EQ(aclprofGetOpDescSize(nullptr), 100000);
  CHECK_EQ(aclprofGetOpNum(&size, 8, &count), 100000);
  CHECK_EQ(count, 0u);
  CHECK_EQ(aclprofGetOpNameLen(&size, 8, 0, &size), 100000);
  CHECK_EQ(aclprofGetOpStart(nullptr, 0, 0) + aclprofGetOpEnd(nullptr, 0, 0), uint64_t{0});
  CHECK_EQ(aclprofGetOpDuration(nullptr, 0, 0) + aclprofGetModelId(nullptr, 0, 0), uint64_t{0});
}

}  // namespace

int main() {
  char name[] = "/tmp/openaclnn-test-XXXXXX";
  const std::string folder = mkdtemp(name);
  CHECK_EQ(aclrtSetDevice(0), 0);
  dumps(folder);
  profiling(folder);
  CHECK_EQ(aclrtResetDevice(0), 0);
  rmdir(folder.c_str());
  return check_result();
}
