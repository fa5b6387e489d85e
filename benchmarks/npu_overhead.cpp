// SPDX-License-Identifier: Apache-2.0
// What an operator that ATen computes costs beside ATen itself, for 16 elements: both phases of the
// C function, with tensors made before, by turns with the operator of ATen.
//
// g++ -O2 -std=c++17 -I HOME/include -I TORCH/include benchmarks/npu_overhead.cpp
//     -L TORCH/lib -Wl,-rpath,TORCH/lib -ltorch_cpu -lc10 -ldl -o npu_overhead
// (HOME: `openaclnn home`; TORCH: the folder of the installed torch)
// LD_LIBRARY_PATH=$(openaclnn home --aten)/lib64 ./npu_overhead
#include <ATen/ATen.h>

#include <ATen/core/LegacyTypeDispatch.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

namespace {

using T = const aclTensor*;
using S = const aclScalar*;

template <class F>
F* find(const char* library, const std::string& name) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  void* found = handle == nullptr ? nullptr : dlsym(handle, name.c_str());
  if (found != nullptr) return reinterpret_cast<F*>(found);
  std::fprintf(stderr, "%s of %s not found: %s\n", name.c_str(), library, dlerror());
  std::exit(1);
}

void check(int32_t code) {
  if (code == 0) return;
  std::fprintf(stderr, "a call failed with %d\n", code);
  std::exit(1);
}

template <class F>
double nanoseconds(F f) {
  constexpr int kCalls = 2000;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) f();
  const std::chrono::duration<double, std::nano> all = std::chrono::steady_clock::now() - begin;
  return all.count() / kCalls;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

T wrap(const at::Tensor& x) {
  static auto* create = find<decltype(aclCreateTensor)>("libascendcl.so", "aclCreateTensor");
  const auto rank = static_cast<uint64_t>(x.dim());
  return create(x.sizes().data(), rank, ACL_FLOAT, x.strides().data(), 0, ACL_FORMAT_ND,
                x.sizes().data(), rank, x.data_ptr());
}

// `arguments` are those of phase 1.
template <class Aten, class... A>
void compare(const std::string& name, Aten aten, A... arguments) {
  using Plan = int32_t(A..., uint64_t*, aclOpExecutor**);
  auto* plan = find<Plan>("libaclnn_math.so", name + "GetWorkspaceSize");
  auto* run = find<int32_t(void*, uint64_t, aclOpExecutor*, aclrtStream)>("libaclnn_math.so", name);
  std::vector<double> ours, theirs, more;
  for (int i = 0; i < 301; ++i) {
    ours.push_back(nanoseconds([&] {
      uint64_t size = 0;
      aclOpExecutor* executor = nullptr;
      check(plan(arguments..., &size, &executor));
      check(run(nullptr, size, executor, nullptr));
    }));
    theirs.push_back(nanoseconds(aten));
    more.push_back(ours.back() - theirs.back());
  }
  std::printf("%-16s %8.0f %8.0f %8.0f\n", name.c_str(), median(ours), median(theirs),
              median(more));
}

}  // namespace

int main() {
  const at::AutoDispatchBelowADInplaceOrView below;  // without autograd, as the library calls
  check(find<decltype(aclrtSetDevice)>("libascendcl.so", "aclrtSetDevice")(0));
  const at::Tensor x = at::rand({4, 4}), y = at::rand({4, 4}), out = at::empty({4, 4});
  const T a = wrap(x), b = wrap(y), c = wrap(out);
  float one = 1;
  const S alpha =
      find<decltype(aclCreateScalar)>("libascendcl.so", "aclCreateScalar")(&one, ACL_FLOAT);
  std::printf("%-16s %8s %8s %8s\n", "ns", "openaclnn", "ATen", "more");
  compare("aclnnExp", [&] { at::exp(x); }, a, c);
  compare("aclnnAdd", [&] { at::add(x, y); }, a, b, alpha, c);
  compare("aclnnMul", [&] { at::mul(x, y); }, a, b, c);
  compare("aclnnMatmul", [&] { at::matmul(x, y); }, a, b, c, int8_t{0});
  compare("aclnnInplaceMul", [&] { x.mul_(y); }, a, b);
}
