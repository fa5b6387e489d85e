// SPDX-License-Identifier: Apache-2.0
// Every object by handle: its kind, creation and end. If a handle is reused, the newest object
// counts.
#pragma once

#include <unordered_map>
#include <vector>

#include "core/check/stack.h"
#include "core/support/reason.h"

namespace openaclnn::check {

struct Object {
  ObjectKind kind;
  const char* call;  // the function that made it; static text or a row's name
  Stack made;
  uint64_t number;  // counts in the order of creation
  bool live;
  const char* ended_by;
  Stack ended;
};

// Not safe for two threads at once.
class Ledger {
 public:
  void add(ObjectKind kind, const char* call, const void* handle);
  void end(const char* call, const void* handle);
  const Object* find(const void* handle) const;
  bool empty() const { return objects_.empty(); }

  struct Left {
    const void* handle;  // that of the first
    const Object* first;
    size_t count;
  };
  // Returns the live objects, in one entry for each call site and kind, oldest first. Those in
  // `skip` are not counted.
  std::vector<Left> left(bool (*skip)(ObjectKind kind, const void* handle)) const;

 private:
  std::unordered_map<const void*, Object> objects_;
  uint64_t made_ = 0;
};

}  // namespace openaclnn::check
