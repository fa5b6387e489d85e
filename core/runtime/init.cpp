// SPDX-License-Identifier: Apache-2.0
// Initialisation is a count and the memory of the first configuration. Nothing else depends on it:
// handles and memory outlive aclFinalize, since programs free them late.
#include <cstdio>
#include <mutex>
#include <optional>
#include <string>

#include "acl/acl_rt.h"
#include "aclnn/aclnn_base.h"
#include "core/runtime/fork.h"
#include "core/runtime/json.h"
#include "core/runtime/status.h"

using namespace openaclnn;

namespace {

struct Initialisation {
  Initialisation() { hold_across_fork(mutex); }

  static Initialisation& get() {
    static auto& state = *new Initialisation;
    return state;
  }

  std::mutex mutex;
  uint64_t count = 0;
  std::optional<std::string> config;  // of the first aclInit of the process; outlives aclFinalize
};

// False when there is no such file; a directory opens, but does not read.
bool read_file(const char* path, std::string* content) {
  FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return false;
  char chunk[4096];
  while (const size_t count = std::fread(chunk, 1, sizeof chunk, file)) {
    content->append(chunk, count);
  }
  const bool read = std::ferror(file) == 0;
  std::fclose(file);
  return read;
}

Status read_config(const char* path, std::string* config) {
  *config = "{}";
  if (path == nullptr || *path == '\0') return {};
  std::string document;
  if (!read_file(path, &document)) {
    return fail(ACL_ERROR_INVALID_FILE,
                "aclInit: configPath must be a readable file, but \"%s\" is not", path);
  }
  if (compact_json(document, config)) return {};
  return fail(ACL_ERROR_PARSE_FILE, "aclInit: configPath must be a JSON file, but in \"%s\" %s",
              path, config->c_str());
}

Status not_initialised(const char* call) {
  return fail(ACL_ERROR_REPEAT_FINALIZE, "%s: acl must be initialised: call aclInit first", call);
}

}  // namespace

aclError aclInit(const char* configPath) {
  std::string config;
  if (Status status = read_config(configPath, &config); !status.ok()) return status.code();
  Initialisation& state = Initialisation::get();
  std::lock_guard lock(state.mutex);
  if (state.config.value_or(config) != config) {
    return fail(ACL_ERROR_INVALID_PARAM,
                "aclInit: configPath must say the same as in the first aclInit of the process, "
                "which was %s, but got %s",
                state.config->c_str(), config.c_str())
        .code();
  }
  state.config = config;
  if (++state.count == 1) return ACL_SUCCESS;
  return fail(ACL_ERROR_REPEAT_INITIALIZE,
              "aclInit: acl is initialised already; it counts %llu references now",
              static_cast<unsigned long long>(state.count))
      .code();
}

aclError aclFinalize() {
  Initialisation& state = Initialisation::get();
  std::lock_guard lock(state.mutex);
  if (state.count == 0) return not_initialised("aclFinalize").code();
  state.count = 0;
  return ACL_SUCCESS;
}

aclError aclFinalizeReference(uint64_t* refCount) {
  Initialisation& state = Initialisation::get();
  std::lock_guard lock(state.mutex);
  const bool initialised = state.count > 0;
  if (initialised) --state.count;
  if (refCount != nullptr) *refCount = state.count;
  return initialised ? ACL_SUCCESS : not_initialised("aclFinalizeReference").code();
}

// Operators need no initialisation: what the file could switch on is a debugging aid of the device.
aclnnStatus aclnnInit(const char*) { return ACLNN_SUCCESS; }

aclnnStatus aclnnFinalize() { return ACLNN_SUCCESS; }
