// SPDX-License-Identifier: Apache-2.0
// An object that lives as long as the process, because exit handlers of the program may still use
// it. It lies in static storage, so that its first use cannot run out of memory.
//
//   static Immortal<Registry> registry;
//   return *registry;
#pragma once

#include <new>
#include <utility>

namespace openaclnn {

template <class T>
class Immortal {
 public:
  template <class... Arguments>
  explicit Immortal(Arguments&&... arguments) {
    new (place_) T(std::forward<Arguments>(arguments)...);
  }
  T& operator*() { return *std::launder(reinterpret_cast<T*>(place_)); }

 private:
  alignas(T) unsigned char place_[sizeof(T)];
};

}  // namespace openaclnn
