// SPDX-License-Identifier: Apache-2.0
// `openaclnn home --aten` puts beside this library: torch, a link to PyTorch's libraries, and the
// backend, which links them.
#include "core/aten/backend.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

#include "aclnn/aclnn_base.h"
#include "core/support/no_destructor.h"
#include "core/support/parallel.h"

namespace openaclnn::aten {
namespace {

constexpr const char* kAdvice = "run `openaclnn home --aten`";

struct Loaded {
  const Backend* backend = nullptr;
  void* library = nullptr;
  std::string problem;  // what is missing, as the end of a sentence
};

std::string own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&find_backend), &info) == 0) return ".";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string last_error() {
  const char* text = dlerror();
  return text == nullptr ? "unknown error" : text;
}

Loaded load() {
  const std::string folder = own_folder();
  const std::string torch = folder + "/torch/libtorch_cpu.so";
  const bool is_there = dlopen(torch.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr;
  void* const cpu = dlopen(torch.c_str(), RTLD_LAZY);
  if (cpu == nullptr)
    return {nullptr, nullptr, "PyTorch not found (" + last_error() + "); " + kAdvice};
  // The backend names it; without its path the loader would look elsewhere.
  (void)dlopen((folder + "/torch/libtorch.so").c_str(), RTLD_LAZY);
  const std::string path = folder + "/libaclnn_math.so";
  void* const library = dlopen(path.c_str(), RTLD_LAZY);
  if (library == nullptr)
    return {nullptr, nullptr,
            "libaclnn_math.so cannot be loaded (" + last_error() + "); " + kAdvice};
  const auto* backend = static_cast<const Backend*>(dlsym(library, kBackend));
  if (backend == nullptr || std::strcmp(backend->rows_digest, rows_digest) != 0)
    return {nullptr, nullptr, path + " belongs to another version of openaclnn; " + kAdvice};
  const auto abi = reinterpret_cast<uint64_t (*)()>(dlsym(cpu, "aoti_torch_abi_version"));
  if (abi == nullptr || abi() >> 32 != backend->torch_abi >> 32)
    return {
        nullptr, nullptr,
        std::string("this PyTorch is not the version that libaclnn_math.so was compiled for; ") +
            kAdvice};
  if (!is_there) backend->set_threads(num_threads());
  return {backend, library, ""};
}

const Loaded& loaded_once() {
  static constinit NoDestructor<Loaded> place;
  return place.get(load);
}

}  // namespace

Status find_backend(const char* call, const Backend** found) {
  const Loaded& loaded = loaded_once();
  if (loaded.backend == nullptr)
    return fail(ACLNN_ERR_INNER, Reason::missing_library, call, "%s", loaded.problem.c_str());
  *found = loaded.backend;
  return {};
}

}  // namespace openaclnn::aten

// The library itself, for collectives and operators by type (core/acl/backend.cpp); NULL without
// it.
extern "C" __attribute__((visibility("default"))) void* openaclnn_aten_load_backend() {
  return openaclnn::aten::loaded_once().library;
}
