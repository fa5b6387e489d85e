// SPDX-License-Identifier: Apache-2.0
// Version, run mode, and parameters of the process and of contexts. Parameters are only stored and
// returned: results are deterministic in any case.
#include <atomic>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"

using namespace openaclnn;

namespace {

constexpr int kOptions = 4;
static_assert(kContextOptions < kOptions);

std::atomic<int64_t> of_process[kOptions];

Status check_option(const char* call, int option, int count) {
  if (option >= 0 && option < count) return {};
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "opt must be in [0, %d), but got %d", count, option);
}

// ACL_OPT_DETERMINISTIC: off, deterministic, strongly consistent, batch consistent. Others are off
// or on.
Status check_value(const char* call, int option, int64_t value) {
  const int64_t most = option == ACL_OPT_DETERMINISTIC ? 3 : 1;
  if (value >= 0 && value <= most) return {};
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
              "value of opt %d must be in [0, %lld], but got %lld", option,
              static_cast<long long>(most), static_cast<long long>(value));
}

}  // namespace

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  constexpr const char* call = "aclrtSetSysParamOpt";
  Status status = check_option(call, opt, kOptions);
  if (status.ok()) status = check_value(call, opt, value);
  if (status.ok()) of_process[opt] = value;
  return status.code();
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  constexpr const char* call = "aclrtGetSysParamOpt";
  Status status = not_null(call, "value", value);
  if (status.ok()) status = check_option(call, opt, kOptions);
  if (status.ok()) *value = of_process[opt];
  return status.code();
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  constexpr const char* call = "aclrtCtxSetSysParamOpt";
  Status status = check_option(call, opt, kContextOptions);
  if (status.ok()) status = check_value(call, opt, value);
  if (!status.ok()) return status.code();
  const PinnedContext context = current_context();
  if (!context) return no_context(call).code();
  context->options[opt] = value;
  return ACL_SUCCESS;
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  constexpr const char* call = "aclrtCtxGetSysParamOpt";
  Status status = not_null(call, "value", value);
  if (status.ok()) status = check_option(call, opt, kContextOptions);
  if (!status.ok()) return status.code();
  const PinnedContext context = current_context();
  if (!context) return no_context(call).code();
  const int64_t kept = context->options[opt];
  if (kept < 0) {
    return fail(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, Reason::call_missing, call,
                "opt %d was never set for this context", static_cast<int>(opt))
        .code();
  }
  *value = kept;
  return ACL_SUCCESS;
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  if (Status null = not_null("aclrtGetRunMode", "runMode", runMode); !null.ok()) return null.code();
  *runMode = ACL_HOST;
  return ACL_SUCCESS;
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  constexpr const char* call = "aclrtGetVersion";
  Status status = not_null(call, "majorVersion", majorVersion);
  if (status.ok()) status = not_null(call, "minorVersion", minorVersion);
  if (status.ok()) status = not_null(call, "patchVersion", patchVersion);
  if (!status.ok()) return status.code();
  *majorVersion = ACL_MAJOR_VERSION;
  *minorVersion = ACL_MINOR_VERSION;
  *patchVersion = ACL_PATCH_VERSION;
  return ACL_SUCCESS;
}

// Operators have no time limit here.
aclError aclrtSetOpExecuteTimeOut(uint32_t) { return ACL_SUCCESS; }

// Microseconds. A device rounds up to what it supports.
aclError aclrtSetOpExecuteTimeOutV2(uint64_t, uint64_t* actualTimeout) {
  const Status status = not_null("aclrtSetOpExecuteTimeOutV2", "actualTimeout", actualTimeout);
  if (status.ok()) *actualTimeout = UINT64_MAX;
  return status.code();
}
