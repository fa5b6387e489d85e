// SPDX-License-Identifier: Apache-2.0
#include "core/trace/name.h"

#include <mutex>
#include <set>
#include <utility>

#include "core/support/no_destructor.h"

namespace openaclnn::trace {

const char* lasting(std::string name) {
  struct Names {
    std::mutex mutex;
    std::set<std::string> known;
  };
  static constinit NoDestructor<Names> place;
  Names& names = place.get();
  const std::lock_guard lock(names.mutex);
  return names.known.insert(std::move(name)).first->c_str();
}

}  // namespace openaclnn::trace
