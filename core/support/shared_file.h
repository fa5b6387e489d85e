// SPDX-License-Identifier: Apache-2.0
// Memory that other processes map by a key of 65 bytes. It is a file in memory, which another
// process opens through /proc as long as this one keeps it open, so nothing stays behind.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/support/status.h"

namespace openaclnn {

inline constexpr size_t kKeyBytes = 65;  // with the terminating zero
inline constexpr size_t kSharedPage = 4096;
inline constexpr size_t kMostProcesses = 256;

enum class SharedKind : uint32_t { memory, physical_memory, notify, event };

// The first page of the file.
struct SharedHeader {
  uint64_t token;  // also in the key
  uint64_t size;   // of what follows the page
  int32_t owner;   // the process that exported it
  SharedKind kind;
  std::atomic<uint32_t> any_process;
  std::atomic<uint32_t> processes;
  std::atomic<int32_t> listed[kMostProcesses];
  std::atomic<uint32_t> word;     // of a notification; the records of an event
  std::atomic<uint32_t> reached;  // the newest record of an event that was reached
};
static_assert(sizeof(SharedHeader) <= kSharedPage);

class SharedFile {
 public:
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;

  // Makes one of `size` bytes behind the header. `any_process`: without a list of processes.
  static Status create(const char* call, SharedKind kind, size_t size, bool any_process,
                       std::shared_ptr<SharedFile>* made);
  // Opens that of a key; fails for an unknown key, for a file that could shrink under those who
  // map it, or where this process is not listed.
  static Status open(const char* call, SharedKind kind, const char* key,
                     std::shared_ptr<SharedFile>* opened);
  // The same for the number of physical memory.
  static Status open(const char* call, uint64_t number, std::shared_ptr<SharedFile>* opened);

  SharedHeader& header() const { return *header_; }
  const std::string& key() const { return key_; }
  size_t size() const { return size_; }  // behind the header
  // 22 bits of the process, 20 of the file descriptor, 22 of the token; 0: does not fit.
  uint64_t number() const;
  bool is_own() const;  // made by this process
  // Maps the bytes behind the header; at `address`, if not NULL. nullptr: the system refuses.
  void* map(void* address) const;

 private:
  SharedFile(int file, SharedHeader* header, std::string key)
      : file_(file), header_(header), key_(std::move(key)), size_(header->size) {}
  const int file_;
  SharedHeader* const header_;
  const std::string key_;
  const size_t size_;  // other processes can write the header's
};

// Checks the arguments of a call that exports: room for the key, flags 0 or `any_process`.
Status check_export(const char* call, const char* key, size_t length, uint64_t flags,
                    uint64_t any_process);
// Lets these processes open the file.
Status list_processes(const char* call, SharedFile& file, const int32_t* processes, size_t count);

}  // namespace openaclnn
