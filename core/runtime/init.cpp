// SPDX-License-Identifier: Apache-2.0
// aclInit counts and keeps the first configuration. Nothing else depends on it: handles and memory
// outlive aclFinalize, because programs free them late.
#include "core/runtime/init.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "acl/acl_rt.h"
#include "aclnn/aclnn_base.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/support/fork.h"
#include "core/support/no_destructor.h"
#include "core/support/observer.h"
#include "core/support/status.h"

using namespace openaclnn;

namespace {

struct Initialisation {
  Initialisation() { hold_across_fork(mutex); }

  static Initialisation& get() {
    static constinit NoDestructor<Initialisation> state;
    return state.get();
  }

  std::mutex mutex;
  uint64_t count = 0;
  std::optional<std::string> config;  // of the first aclInit of the process; outlives aclFinalize
};

// False if the file cannot be read; a directory opens, but reading fails.
bool read_file(const char* path, std::string* content) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path, "rb"), std::fclose);
  if (file == nullptr) return false;
  char chunk[4096];
  while (const size_t count = std::fread(chunk, 1, sizeof chunk, file.get())) {
    content->append(chunk, count);
  }
  return std::ferror(file.get()) == 0;
}

Status read_config(const char* path, std::string* config) {
  *config = "{}";
  if (path == nullptr || *path == '\0') return {};
  std::string document;
  if (!read_file(path, &document)) {
    return fail(ACL_ERROR_INVALID_FILE, Reason::wrong_value, "aclInit",
                "configPath \"%s\" cannot be read", path);
  }
  if (compact_json(document, config)) return {};
  return fail(ACL_ERROR_PARSE_FILE, Reason::wrong_value, "aclInit",
              "configPath \"%s\" is not valid JSON: %s", path, config->c_str());
}

// The keys that have an effect; all others are ignored.
struct Settings {
  int32_t default_device = -1;
  bool dump_tensors = false;
  bool share_sentences = false;
};

std::atomic<bool> dump_tensors = false;

Status bad_value(const char* key, const std::string& must_be, std::string_view value) {
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, "aclInit",
              "%s must be %s, but got %.*s", key, must_be.c_str(), static_cast<int>(value.size()),
              value.data());
}

Status read_settings(std::string_view config, Settings* settings) {
  const std::string_view mode = json_member(config, "err_msg_mode");
  settings->share_sentences = mode == "\"1\"";
  if (!mode.empty() && mode != "\"0\"" && mode != "\"1\"") {
    return bad_value("err_msg_mode", "\"0\" or \"1\"", mode);
  }
  // dump_scene is for dumps of exceptions, not of tensors.
  const std::string_view dump = json_member(config, "dump");
  settings->dump_tensors =
      !json_member(dump, "dump_path").empty() && json_member(dump, "dump_scene").empty();
  const std::string_view device =
      json_member(json_member(config, "defaultDevice"), "default_device");
  if (device.empty()) return {};
  for (int32_t id = 0; id < device_count(); ++id) {
    if (device == '"' + std::to_string(id) + '"') return settings->default_device = id, Status();
  }
  const std::string count = std::to_string(device_count());
  return bad_value("default_device", "a string with a number in [0, " + count + ")", device);
}

Status not_initialised(const char* call) {
  return fail(ACL_ERROR_REPEAT_FINALIZE, Reason::call_missing, call,
              "acl is not initialised; call aclInit first");
}

Status initialise(const char* path) {
  std::string config;
  if (Status status = read_config(path, &config); !status.ok()) return status;
  Settings settings;
  if (Status status = read_settings(config, &settings); !status.ok()) return status;
  Initialisation& state = Initialisation::get();
  {
    std::lock_guard lock(state.mutex);
    if (!state.config) state.config = config;
    if (*state.config != config) {
      return fail(
          ACL_ERROR_INVALID_PARAM, Reason::wrong_value, "aclInit",
          "the configuration differs from that of the first aclInit of this process, %s: got %s",
          state.config->c_str(), config.c_str());
    }
  }
  // The effects of the configuration outlive aclFinalize, as the configuration does.
  if (settings.default_device >= 0) set_default_device(settings.default_device);
  if (settings.share_sentences) share_sentences();
  if (settings.dump_tensors) dump_tensors = true;
  std::lock_guard lock(state.mutex);
  if (++state.count == 1) {
    if (observer != nullptr) [[unlikely]]
      observer->initialised();
    return {};
  }
  return fail_mildly(ACL_ERROR_REPEAT_INITIALIZE, Reason::already_done, "aclInit",
                     "acl is already initialised; its reference count is now %llu",
                     static_cast<unsigned long long>(state.count));
}

}  // namespace

namespace openaclnn {

bool wants_dump() { return dump_tensors; }

}  // namespace openaclnn

aclError aclInit(const char* configPath) {
  return guarded("aclInit", ACL_ERROR_RT_MEMORY_ALLOCATION,
                 [&] { return initialise(configPath).code(); });
}

aclError aclFinalize() {
  Initialisation& state = Initialisation::get();
  std::unique_lock lock(state.mutex);
  if (state.count == 0) return not_initialised("aclFinalize").code();
  state.count = 0;
  lock.unlock();
  if (observer != nullptr) [[unlikely]]
    observer->finalised("aclFinalize");
  return ACL_SUCCESS;
}

aclError aclFinalizeReference(uint64_t* refCount) {
  Initialisation& state = Initialisation::get();
  std::unique_lock lock(state.mutex);
  const bool initialised = state.count > 0;
  const bool last = state.count == 1;
  if (initialised) --state.count;
  if (refCount != nullptr) *refCount = state.count;
  lock.unlock();
  if (last && observer != nullptr) [[unlikely]]
    observer->finalised("aclFinalizeReference");
  return initialised ? ACL_SUCCESS : not_initialised("aclFinalizeReference").code();
}

// Operators need no initialisation; the file can only enable debugging aids of the device.
aclnnStatus aclnnInit(const char*) { return ACLNN_SUCCESS; }

aclnnStatus aclnnFinalize() { return ACLNN_SUCCESS; }
