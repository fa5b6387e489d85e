// SPDX-License-Identifier: Apache-2.0
// Options that torch_npu sets and asks for. Nothing is compiled here, so those of the compiler are
// stored and returned; arithmetic is that of IEEE 754, with infinities and NaN, and nothing else.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "core/npu/calls.h"
#include "core/runtime/api_guard.h"
#include "core/runtime/no_destructor.h"

using namespace openaclnn;

namespace {

constexpr int kMostOptions = 64;
constexpr int kJitCompile = 10;

struct Options {
  std::mutex mutex;
  std::map<int, std::string> compile = {{kJitCompile, "disable"}};
  std::map<aclrtStream, uint32_t> overflow;

  static Options& get() {
    static constinit NoDestructor<Options> options;
    return options.get();
  }
};

Status check_option(const char* call, int option) {
  if (option >= 0 && option < kMostOptions) return {};
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "opt must be in [0, %d), but got %d", kMostOptions, option);
}

// The runtime decides whether the stream is alive.
Status check_stream(aclrtStream stream) {
  aclrtStreamStatus status;
  return Status(aclrtStreamQuery(stream, &status));
}

}  // namespace

aclError aclSetCompileopt(int opt, const char* value) {
  constexpr const char* call = "aclSetCompileopt";
  return guarded(call, ACL_ERROR_BAD_ALLOC,
                 [&] {
                   Status status = check_option(call, opt);
                   if (status.ok()) status = not_null(call, "value", value);
                   if (!status.ok()) return status;
                   Options& options = Options::get();
                   std::lock_guard lock(options.mutex);
                   options.compile[opt] = value;
                   return status;
                 })
      .code();
}

size_t aclGetCompileoptSize(int opt) {
  Options& options = Options::get();
  std::lock_guard lock(options.mutex);
  const auto found = options.compile.find(opt);
  return found == options.compile.end() ? 1 : found->second.size() + 1;
}

aclError aclGetCompileopt(int opt, char* value, size_t length) {
  constexpr const char* call = "aclGetCompileopt";
  Status status = check_option(call, opt);
  if (status.ok()) status = not_null(call, "value", value);
  if (!status.ok()) return status.code();
  Options& options = Options::get();
  std::lock_guard lock(options.mutex);
  const auto found = options.compile.find(opt);
  const char* kept = found == options.compile.end() ? "" : found->second.c_str();
  if (length <= std::strlen(kept)) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "length must be at least %zu, but got %zu", std::strlen(kept) + 1, length)
        .code();
  }
  std::strcpy(value, kept);
  return ACL_SUCCESS;
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  if (mode == ACL_RT_OVERFLOW_MODE_INFNAN) return ACL_SUCCESS;
  // Mildly: torch_npu ignores it, and later failures must not bring its sentence along.
  return fail_mildly(
             ACL_ERROR_API_NOT_SUPPORT, Reason::not_supported, "aclrtSetDeviceSatMode",
             "mode %d is not supported: results do not saturate here (mode 1, infinities and NaN)",
             static_cast<int>(mode))
      .code();
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  Status status = not_null("aclrtGetDeviceSatMode", "mode", mode);
  if (status.ok()) *mode = ACL_RT_OVERFLOW_MODE_INFNAN;
  return status.code();
}

// No effect: results do not saturate here, an overflow is an infinity.
aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  constexpr const char* call = "aclrtSetStreamOverflowSwitch";
  return guarded(call, ACL_ERROR_BAD_ALLOC,
                 [&] {
                   Status status = check_stream(stream);
                   if (!status.ok()) return status;
                   if (flag > 1) {
                     return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                                 "flag must be 0 or 1, but got %u", flag);
                   }
                   Options& options = Options::get();
                   std::lock_guard lock(options.mutex);
                   options.overflow[stream] = flag;
                   return status;
                 })
      .code();
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  Status status = not_null("aclrtGetStreamOverflowSwitch", "flag", flag);
  if (status.ok()) status = check_stream(stream);
  if (!status.ok()) return status.code();
  Options& options = Options::get();
  std::lock_guard lock(options.mutex);
  const auto found = options.overflow.find(stream);
  *flag = found == options.overflow.end() ? 0 : found->second;
  return ACL_SUCCESS;
}

// Microseconds. A device rounds up to what it supports; here: no limit.
aclError aclrtSetOpExecuteTimeOutV2(uint64_t, uint64_t* actualTimeout) {
  Status status = not_null("aclrtSetOpExecuteTimeOutV2", "actualTimeout", actualTimeout);
  if (status.ok()) *actualTimeout = UINT64_MAX;
  return status.code();
}
