// SPDX-License-Identifier: Apache-2.0
#include "core/trace/tally.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "acl/acl_rt.h"
#include "core/runtime/work_listener.h"
#include "core/support/product.h"
#include "core/trace/core_calls.h"
#include "core/trace/output.h"

namespace openaclnn::trace {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string listed(const Signature& signature) {
  std::string text;
  for (const TensorArgument& own : signature) {
    text += (text.empty() ? "[" : ", [") + quoted(own.name) + ", " + quoted(own.dtype) + ", " +
            std::to_string(own.rank) + "]";
  }
  return "[" + text + "]";
}

void warn_unwritten(const std::string& path) {
  std::fprintf(stderr, "openaclnn npu: %s could not be written: %s\n", path.c_str(),
               std::strerror(errno));
}

void write_entry(FILE* file, const Tallied& own) {
  std::fprintf(
      file,
      "{\"kind\": \"%s\", \"name\": %s, \"tensors\": %s, \"calls\": %llu, \"refused\": %llu, "
      "\"planned\": %lld, \"worked\": %lld, \"sentence\": %s, \"verdicts\": [",
      own.kind == Tallied::Kind::fallback ? "fallback" : "function", quoted(own.name).c_str(),
      own.tensors.c_str(), static_cast<unsigned long long>(own.calls),
      static_cast<unsigned long long>(own.refused), static_cast<long long>(own.planned),
      static_cast<long long>(own.worked), quoted(own.sentence).c_str());
  const char* separator = "";
  for (const Verdict& verdict : own.verdicts) {
    std::fprintf(file, "%s{\"product\": %s, \"code\": %d, \"sentence\": %s}", separator,
                 quoted(verdict.product).c_str(), static_cast<int>(verdict.code),
                 quoted(verdict.sentence).c_str());
    separator = ", ";
  }
  std::fputs("]}", file);
}

void write_memory(FILE* file) {
  uint32_t count = 0;
  (void)openaclnn_aclrtGetDeviceCount(&count);
  const char* separator = "";
  for (uint32_t device = 0; device < count; ++device) {
    aclrtMemUsageInfo use{};
    size_t found = 0;
    if (openaclnn_aclrtGetMemUsageInfo(static_cast<int32_t>(device), &use, 1, &found) != 0)
      continue;
    std::fprintf(file, "%s{\"device\": %u, \"peak\": %llu}", separator, device,
                 static_cast<unsigned long long>(use.memPeakSize));
    separator = ", ";
  }
}

}  // namespace

Tally::Tally() : folder_(variable("OPENACLNN_REPORT")) {
  std::string key;
  for (const char letter : variable("OPENACLNN_REPORT_PRODUCTS") + ",") {
    if (letter != ',') {
      key += letter;
    } else if (!key.empty()) {
      products_.push_back(std::exchange(key, ""));
    }
  }
}

Tallied* Tally::find(Tallied::Kind kind, const std::string& name, const Signature& signature) {
  const std::string tensors = listed(signature);
  Tallied& own = entries_[name + tensors];
  if (own.name.empty()) own.kind = kind, own.name = name, own.tensors = tensors;
  return &own;
}

void Tally::open() {
  if (!wanted() || !path_.empty()) return;
  path_ = folder_ + "/" + std::to_string(getpid()) + "-" + std::to_string(steady_nanoseconds()) +
          ".json";  // exec keeps the process id
  FILE* file = std::fopen(path_.c_str(), "w");
  if (file != nullptr) std::fclose(file);
}

// Plans and submissions of the parent point to the entries.
void Tally::restart() {
  path_.clear();
  written_ = 0;
  for (auto& [key, own] : entries_) {
    own.calls = own.refused = 0;
    own.planned = own.worked = 0;
  }
}

bool Tally::is_due(int64_t now) {
  constexpr int64_t kSecond = 1'000'000'000;
  if (path_.empty() || now - written_ < kSecond) return false;
  written_ = now;
  return true;
}

void Tally::write(const std::vector<Call>& calls, const std::string& program, bool complete) {
  if (path_.empty()) return;
  const std::string beside = path_ + ".part";  // a reader never sees half a file
  FILE* file = std::fopen(beside.c_str(), "w");
  if (file == nullptr) return warn_unwritten(path_);
  std::fprintf(file,
               "{\"process\": %d, \"program\": %s, \"product\": %s, \"complete\": %s, "
               "\"entries\": [",
               getpid(), quoted(program).c_str(), quoted(openaclnn_product_key()).c_str(),
               complete ? "true" : "false");
  const char* separator = "\n";
  for (const auto& [key, own] : entries_) {
    if (own.calls == 0) continue;
    std::fputs(separator, file);
    write_entry(file, own);
    separator = ",\n";
  }
  std::fputs("],\n\"calls\": [", file);
  separator = "\n";
  for (const Call& own : calls) {
    std::fprintf(file, "%s[%s, %llu, %lld]", separator, quoted(own.name).c_str(),
                 static_cast<unsigned long long>(own.count), static_cast<long long>(own.total));
    separator = ",\n";
  }
  std::fputs("],\n\"memory\": [", file);
  write_memory(file);
  std::fputs("]}\n", file);
  const bool whole = std::ferror(file) == 0;
  if (std::fclose(file) == 0 && whole) {
    (void)std::rename(beside.c_str(), path_.c_str());
    return;
  }
  warn_unwritten(path_);
  (void)std::remove(beside.c_str());
}

}  // namespace openaclnn::trace
