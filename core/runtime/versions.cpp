// SPDX-License-Identifier: Apache-2.0
// The version of CANN whose interface this is, for each of its packages. There is no driver.
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"

using namespace openaclnn;

namespace {

constexpr const char* kVersion = "8.5.0";
constexpr int32_t kMajor = 8, kMinor = 5, kPatch = 0;

// Directory names below share/info, with dashes.
constexpr std::string_view kPackages[] = {
    "runtime",         "compiler", "hccl",       "hcomm",    "toolkit",     "opp",
    "opp-kernel",      "ops",      "ops-legacy", "ops-math", "ops-nn",      "ops-cv",
    "ops-transformer", "cann",     "nnae",       "ge",       "ge-compiler", "asc-devkit",
    "bisheng-compiler"};

Status check_package(const char* call, const char* given) {
  std::string name = given;
  for (char& letter : name) {
    if (letter == '_') letter = '-';
  }
  for (const std::string_view package : kPackages) {
    if (package == name) return {};
  }
  return fail_mildly(ACL_ERROR_INVALID_FILE, Reason::wrong_value, call,
                     "package \"%s\" is not installed: there are the packages of CANN (runtime, "
                     "compiler, ops-nn, ...), and no driver or firmware",
                     given);
}

}  // namespace

aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  constexpr const char* call = "aclsysGetVersionStr";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    Status status = not_null(call, "pkgName", pkgName);
    if (status.ok()) status = not_null(call, "versionStr", versionStr);
    if (status.ok()) status = check_package(call, pkgName);
    if (status.ok()) std::strcpy(versionStr, kVersion);
    return status.code();
  });
}

aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
  constexpr const char* call = "aclsysGetVersionNum";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    Status status = not_null(call, "pkgName", pkgName);
    if (status.ok()) status = not_null(call, "versionNum", versionNum);
    if (status.ok()) status = check_package(call, pkgName);
    if (status.ok()) *versionNum = kMajor * 10'000'000 + kMinor * 100'000 + kPatch * 1'000;
    return status.code();
  });
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  constexpr const char* call = "aclsysGetCANNVersion";
  Status status = not_null(call, "version", version);
  if (!status.ok()) return status.code();
  // Not the member behind them: torch_npu's version of the structure ends before it.
  std::memset(version, 0, offsetof(aclCANNPackageVersion, reserved));
  const int package = static_cast<int>(name);
  if (package < ACL_PKG_NAME_CANN || package >= ACL_PKG_NAME_DRIVER) {
    return fail_mildly(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                       "name must be in [0, %d), a package other than the driver, but got %d",
                       ACL_PKG_NAME_DRIVER, package)
        .code();
  }
  std::strcpy(version->version, kVersion);
  snprintf(version->majorVersion, sizeof version->majorVersion, "%d", kMajor);
  snprintf(version->minorVersion, sizeof version->minorVersion, "%d", kMinor);
  snprintf(version->releaseVersion, sizeof version->releaseVersion, "%d", kPatch);
  return ACL_SUCCESS;
}
