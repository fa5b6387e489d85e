// SPDX-License-Identifier: Apache-2.0
// Options of the compiler. Nothing is compiled here, so they are stored and returned.
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "acl/acl_op_compiler.h"
#include "core/support/api_guard.h"
#include "core/support/no_destructor.h"

using namespace openaclnn;

namespace {

constexpr int kMostOptions = 64;
constexpr int kJitCompile = 10;

struct Options {
  std::mutex mutex;
  std::map<int, std::string> compile = {{kJitCompile, "disable"}};

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

}  // namespace

aclError aclSetCompileopt(aclCompileOpt opt, const char* value) {
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

size_t aclGetCompileoptSize(aclCompileOpt opt) {
  Options& options = Options::get();
  std::lock_guard lock(options.mutex);
  const auto found = options.compile.find(opt);
  return found == options.compile.end() ? 1 : found->second.size() + 1;
}

aclError aclGetCompileopt(aclCompileOpt opt, char* value, size_t length) {
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
