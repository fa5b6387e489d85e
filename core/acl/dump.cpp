// SPDX-License-Identifier: Apache-2.0
// Dumps of kernels and of failures: there are none here. Settings are checked and kept.
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "acl/acl_dump.h"
#include "core/support/api_guard.h"

struct acldumpTensorInfo;

using namespace openaclnn;

namespace {

std::atomic<acldumpMessageCallback> receiver = nullptr;
std::atomic<bool> dumps_arguments = false;

Status check_dump_type(const char* call, uint32_t type) {
  if (type == ACL_OP_DUMP_OP_AICORE_ARGS) return {};
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "dumpType must be ACL_OP_DUMP_OP_AICORE_ARGS (1), but got %u", type);
}

Status no_exception_dump(const char* call) {
  return fail(ACL_ERROR_DUMP_NOT_RUN, Reason::not_supported, call,
              "failures are not dumped here; aclGetRecentErrMsg says what failed");
}

}  // namespace

aclError acldumpRegCallback(acldumpMessageCallback messageCallback, int32_t flag) {
  constexpr const char* call = "acldumpRegCallback";
  Status status = not_null(call, "messageCallback", reinterpret_cast<void*>(messageCallback));
  if (status.ok() && flag != 0) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "flag must be 0, but got %d",
                  flag);
  }
  if (status.ok()) receiver = messageCallback;
  return status.code();
}

void acldumpUnregCallback(void) { receiver = nullptr; }

aclError aclopStartDumpArgs(uint32_t dumpType, const char* path) {
  constexpr const char* call = "aclopStartDumpArgs";
  Status status = check_dump_type(call, dumpType);
  if (status.ok()) status = not_null(call, "path", path);
  if (!status.ok()) return status.code();
  if (mkdir(path, 0777) != 0 && errno != EEXIST) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "path \"%s\" cannot be made: %s", path, std::strerror(errno))
        .code();
  }
  dumps_arguments = true;
  return ACL_SUCCESS;
}

aclError aclopStopDumpArgs(uint32_t dumpType) {
  constexpr const char* call = "aclopStopDumpArgs";
  Status status = check_dump_type(call, dumpType);
  if (status.ok() && !dumps_arguments.exchange(false)) {
    status = fail(ACL_ERROR_DUMP_NOT_RUN, Reason::call_missing, call,
                  "no dump was started; call aclopStartDumpArgs first");
  }
  return status.code();
}

const char* acldumpGetPath(acldumpType) { return nullptr; }

aclError acldumpSaveExceptionInfo(const char* fileName, const char*, const acldumpTensorInfo*,
                                  size_t) {
  constexpr const char* call = "acldumpSaveExceptionInfo";
  Status status = not_null(call, "fileName", fileName);
  if (status.ok()) status = no_exception_dump(call);
  return status.code();
}

aclError acldumpGetExceptionInfoPath(char* path, size_t) {
  constexpr const char* call = "acldumpGetExceptionInfoPath";
  Status status = not_null(call, "path", path);
  if (status.ok()) status = no_exception_dump(call);
  return status.code();
}
