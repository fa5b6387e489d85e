// SPDX-License-Identifier: Apache-2.0
// How the C functions of this room find the library in which ATen computes; core/aten/backend.cpp
// is how the rows of ATen find it.
#include "core/acl/backend.h"

#include <dlfcn.h>

#include <string>

#include "core/support/no_destructor.h"

namespace openaclnn {
namespace {

// Beside the library that the program loaded, in a directory of `openaclnn home --aten`.
void* open_beside() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&find_in_backend), &info) == 0) return nullptr;
  const std::string path = info.dli_fname;
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  void* const aten = dlopen((folder + "libopenaclnn_aten.so").c_str(), RTLD_LAZY);
  if (aten == nullptr) return nullptr;
  const auto load = reinterpret_cast<void* (*)()>(dlsym(aten, "openaclnn_aten_load_backend"));
  return load == nullptr ? nullptr : load();
}

}  // namespace

void* find_in_backend(const char* function) {
  static constinit NoDestructor<void*> opened;
  void* const library = opened.get([] {
    void* const found = dlopen("libaclnn_math.so", RTLD_LAZY | RTLD_LOCAL);
    return found != nullptr ? found : open_beside();
  });
  return library == nullptr ? nullptr : dlsym(library, function);
}

}  // namespace openaclnn
