// SPDX-License-Identifier: Apache-2.0
#include "core/support/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <new>

#include "core/support/api_guard.h"

namespace openaclnn {
namespace {

constexpr const char* kKeyFormat = "openaclnn-%d-%d-%016llx";
constexpr int kProcessBits = 22, kFileBits = 20, kTokenBits = 22;  // of a number

// What a key or a number says of the file.
struct SharedName {
  const char* argument;
  SharedKind kind;
  int process, file;
  uint64_t token, token_mask;
};

Status unknown(const char* call, const char* argument, const char* why) {
  return fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call, "%s %s", argument, why);
}

SharedHeader* map_header(int file) {
  void* page = mmap(nullptr, kSharedPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : static_cast<SharedHeader*>(page);
}

constexpr const char* kKindNames[] = {"memory", "physical memory", "a notify", "an event"};

// Touching a page behind the end of a file kills the process, so no process may shorten the file.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool is_listed(const SharedHeader& header) {
  if (header.any_process != 0) return true;
  const int32_t own = getpid();
  if (header.owner == own) return true;
  const uint32_t count = std::min<uint32_t>(header.processes, kMostProcesses);
  for (uint32_t i = 0; i < count; ++i) {
    if (header.listed[i] == own) return true;
  }
  return false;
}

// Opens the file of another process, or fails; `page` is its header.
Status open_named(const char* call, const SharedName& name, int* opened, SharedHeader** page) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/fd/%d", name.process, name.file);
  const int file = ::open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  // Pipes and sockets have no end to seek. (fstat is a symbol only since glibc 2.33.)
  const off_t size = file >= 0 ? lseek(file, 0, SEEK_END) : -1;
  const int seals = size >= static_cast<off_t>(kSharedPage) ? fcntl(file, F_GET_SEALS) : -1;
  *page = seals >= 0 && (seals & kSeals) == kSeals ? map_header(file) : nullptr;
  const auto refuse = [&](const char* why) {
    if (*page != nullptr) munmap(*page, kSharedPage);
    if (file >= 0) close(file);
    return unknown(call, name.argument, why);
  };
  if (*page == nullptr || (((*page)->token ^ name.token) & name.token_mask) != 0 ||
      (*page)->size != static_cast<uint64_t>(size) - kSharedPage) {
    return refuse("is not exported any more, or its process has ended");
  }
  if ((*page)->kind != name.kind) {
    const auto kind = std::min(static_cast<size_t>((*page)->kind), std::size(kKindNames) - 1);
    const std::string why = std::string("is that of ") + kKindNames[kind] +
                            ", and this call opens " + kKindNames[static_cast<size_t>(name.kind)];
    return refuse(why.c_str());
  }
  if (!is_listed(**page)) return refuse("is for other processes: this one is not in its list");
  *opened = file;
  return {};
}

}  // namespace

SharedFile::~SharedFile() {
  munmap(header_, kSharedPage);
  close(file_);
}

bool SharedFile::is_own() const { return header_->owner == getpid(); }

void* SharedFile::map(void* address) const {
  void* found = mmap(address, size_, PROT_READ | PROT_WRITE,
                     MAP_SHARED | (address == nullptr ? 0 : MAP_FIXED), file_, kSharedPage);
  return found == MAP_FAILED ? nullptr : found;
}

Status SharedFile::create(const char* call, SharedKind kind, size_t size, bool any_process,
                          std::shared_ptr<SharedFile>* made) {
  const int file = memfd_create("openaclnn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  SharedHeader* page = nullptr;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(kSharedPage + size)) == 0 &&
      fcntl(file, F_ADD_SEALS, kSeals) == 0) {
    page = map_header(file);
  }
  uint64_t token = 0;
  if (page == nullptr || getrandom(&token, sizeof token, 0) != sizeof token) {
    const int error = errno;
    if (file >= 0) close(file);
    return fail(ACL_ERROR_RT_MEMORY_ALLOCATION, Reason::out_of_memory, call,
                "the system gives no memory to share: %s", std::strerror(error));
  }
  page->token = token;
  page->size = size;
  page->owner = getpid();
  page->kind = kind;
  page->any_process = any_process;
  char key[kKeyBytes];
  snprintf(key, sizeof key, kKeyFormat, getpid(), file, static_cast<unsigned long long>(token));
  made->reset(new SharedFile(file, page, key));
  return {};
}

Status SharedFile::open(const char* call, SharedKind kind, const char* key,
                        std::shared_ptr<SharedFile>* opened) {
  if (Status null = not_null(call, "key", key); !null.ok()) return null;
  int process = 0, number = 0;
  unsigned long long token = 0;
  const std::string text(key, strnlen(key, kKeyBytes));
  if (text.size() >= kKeyBytes ||
      std::sscanf(text.c_str(), kKeyFormat, &process, &number, &token) != 3) {
    return unknown(call, "key", "is not one that openaclnn exported");
  }
  int file = -1;
  SharedHeader* page = nullptr;
  const SharedName name = {"key", kind, process, number, token, UINT64_MAX};
  if (Status status = open_named(call, name, &file, &page); !status.ok()) return status;
  opened->reset(new SharedFile(file, page, text));
  return {};
}

uint64_t SharedFile::number() const {
  const auto process = static_cast<uint64_t>(header_->owner), file = static_cast<uint64_t>(file_);
  if (process >> kProcessBits != 0 || file >> kFileBits != 0) return 0;
  return process << (kFileBits + kTokenBits) | file << kTokenBits |
         (header_->token & ((uint64_t{1} << kTokenBits) - 1));
}

Status SharedFile::open(const char* call, uint64_t number, std::shared_ptr<SharedFile>* opened) {
  constexpr uint64_t file_mask = (1 << kFileBits) - 1, token_mask = (1 << kTokenBits) - 1;
  int file = -1;
  SharedHeader* page = nullptr;
  const SharedName name = {"shareableHandle",
                           SharedKind::physical_memory,
                           static_cast<int>(number >> (kFileBits + kTokenBits)),
                           static_cast<int>(number >> kTokenBits & file_mask),
                           number,
                           token_mask};
  if (Status status = open_named(call, name, &file, &page); !status.ok()) return status;
  opened->reset(new SharedFile(file, page, ""));
  return {};
}

Status check_export(const char* call, const char* key, size_t length, uint64_t flags,
                    uint64_t any_process) {
  Status status = not_null(call, "key", key);
  if (status.ok() && length < kKeyBytes) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "len must be at least %zu, but got %zu", kKeyBytes, length);
  }
  if (status.ok() && (flags & ~any_process) != 0) {
    status = fail(
        ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "flags must be 0 or %llu, but got %llu",
        static_cast<unsigned long long>(any_process), static_cast<unsigned long long>(flags));
  }
  return status;
}

Status list_processes(const char* call, SharedFile& file, const int32_t* processes, size_t count) {
  if (Status null = not_null(call, "pid", processes); !null.ok()) return null;
  SharedHeader& header = file.header();
  const size_t known = std::min<size_t>(header.processes, kMostProcesses);
  if (count == 0 || count > kMostProcesses - known) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "the number of processes must be in [1, %zu], but got %zu", kMostProcesses - known,
                count);
  }
  for (size_t i = 0; i < count; ++i) header.listed[known + i] = processes[i];
  header.processes = static_cast<uint32_t>(known + count);
  return {};
}

}  // namespace openaclnn
