// SPDX-License-Identifier: Apache-2.0
#include "core/check/ledger.h"

#include <algorithm>
#include <map>
#include <utility>

namespace openaclnn::check {

void Ledger::add(ObjectKind kind, const char* call, const void* handle) {
  objects_[handle] = {kind, call, stack_here(), made_++, true, nullptr, {}};
}

void Ledger::end(const char* call, const void* handle) {
  const auto found = objects_.find(handle);
  if (found == objects_.end()) return;
  found->second.live = false;
  found->second.ended_by = call;
  found->second.ended = stack_here();
}

const Object* Ledger::find(const void* handle) const {
  const auto found = objects_.find(handle);
  return found == objects_.end() ? nullptr : &found->second;
}

std::vector<Ledger::Left> Ledger::left(bool (*skip)(ObjectKind, const void*)) const {
  std::map<std::pair<ObjectKind, uint64_t>, Left> sites;
  for (const auto& [handle, object] : objects_) {
    if (!object.live || skip(object.kind, handle)) continue;
    Left& left = sites[{object.kind, object.made.hash()}];
    if (left.count++ == 0 || object.number < left.first->number) {
      left.handle = handle;
      left.first = &object;
    }
  }
  std::vector<Left> all;
  for (const auto& [site, left] : sites) all.push_back(left);
  std::sort(all.begin(), all.end(),
            [](const Left& a, const Left& b) { return a.first->number < b.first->number; });
  return all;
}

}  // namespace openaclnn::check
