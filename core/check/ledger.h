// SPDX-License-Identifier: Apache-2.0
// Every object by its handle: what it is, who made it, who ended it. Handles are reused in the end;
// then the newest object counts.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/check/stack.h"

namespace openaclnn::check {

struct Object {
  const char* thing;  // "aclTensor"
  const char* call;   // that made it; static text or a row's name
  Stack made;
  uint64_t number;  // in the order of making
  bool live;
  const char* ended_by;
  Stack ended;
};

// Not for two threads at once.
class Ledger {
 public:
  void add(const char* thing, const char* call, const void* handle);
  void end(const char* call, const void* handle);
  const Object* find(const void* handle) const;
  bool empty() const { return objects_.empty(); }

  struct Left {
    const void* handle;  // of the first
    const Object* first;
    size_t count;
  };
  // The live objects, in one entry for each place and thing, oldest first. `skip` are not counted.
  std::vector<Left> left(bool (*skip)(const char* thing, const void* handle)) const;

 private:
  std::unordered_map<const void*, Object> objects_;
  uint64_t made_ = 0;
};

}  // namespace openaclnn::check
