// SPDX-License-Identifier: Apache-2.0
// What a provided operator costs beside ATen itself, for 16 elements: both phases of the C
// function, with tensors made before, by turns with the operator of ATen called by its name in C++.
//
// g++ -O2 -std=c++17 -I HOME/include -I TORCH/include benchmarks/npu_overhead.cpp
//     -L TORCH/lib -Wl,-rpath,TORCH/lib -ltorch_cpu -lc10 -ldl -o npu_overhead
// (HOME: `openaclnn home`; TORCH: the folder of the installed torch)
// openaclnn npu -- ./npu_overhead
#include <ATen/ATen.h>

#include <ATen/core/LegacyTypeDispatch.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"

namespace {

template <class F>
F* find(const char* library, const char* name) {
  void* handle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  void* found = handle == nullptr ? nullptr : dlsym(handle, name);
  if (found != nullptr) return reinterpret_cast<F*>(found);
  std::fprintf(stderr, "%s of %s must be there: %s\n", name, library, dlerror());
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

aclTensor* wrap(const at::Tensor& x) {
  static auto* create = find<decltype(aclCreateTensor)>("libascendcl.so", "aclCreateTensor");
  return create(x.sizes().data(), static_cast<uint64_t>(x.dim()), ACL_FLOAT, x.strides().data(), 0,
                ACL_FORMAT_ND, x.sizes().data(), static_cast<uint64_t>(x.dim()), x.data_ptr());
}

void check(int32_t code) {
  if (code == 0) return;
  std::fprintf(stderr, "a call failed with %d\n", code);
  std::exit(1);
}

using Run = int32_t(void*, uint64_t, aclOpExecutor*, aclrtStream);

// plan(workspace size, executor) is phase 1.
template <class Plan, class Plain>
void compare(const char* name, Plan plan, Plain plain) {
  auto* run = find<Run>("libaclnn_math.so", name);
  const auto both = [&] {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    check(plan(&size, &executor));
    check(run(nullptr, size, executor, nullptr));
  };
  std::vector<double> ours, theirs, more;
  for (int i = 0; i < 301; ++i) {
    ours.push_back(nanoseconds(both));
    theirs.push_back(nanoseconds(plain));
    more.push_back(ours.back() - theirs.back());
  }
  std::printf("%-16s %8.0f %8.0f %8.0f\n", name, median(ours), median(theirs), median(more));
}

template <class... A>
auto phase1(const std::string& name) {
  return find<int32_t(A..., uint64_t*, aclOpExecutor**)>("libaclnn_math.so",
                                                         (name + "GetWorkspaceSize").c_str());
}

}  // namespace

int main() {
  const at::AutoDispatchBelowADInplaceOrView below;  // as the provider calls, without autograd

  check(find<decltype(aclrtSetDevice)>("libascendcl.so", "aclrtSetDevice")(0));
  const at::Tensor x = at::rand({4, 4}), y = at::rand({4, 4}), out = at::empty({4, 4});
  aclTensor *a = wrap(x), *b = wrap(y), *c = wrap(out);
  float one = 1;
  aclScalar* alpha =
      find<decltype(aclCreateScalar)>("libascendcl.so", "aclCreateScalar")(&one, ACL_FLOAT);
  using T = const aclTensor*;
  std::printf("%-16s %8s %8s %8s\n", "ns", "openaclnn", "ATen", "more");
  compare(
      "aclnnExp", [f = phase1<T, T>("aclnnExp"), a, c](auto* s, auto** e) { return f(a, c, s, e); },
      [&] { at::Tensor made = at::exp(x); });
  compare(
      "aclnnAdd",
      [f = phase1<T, T, const aclScalar*, T>("aclnnAdd"), a, b, c, alpha](auto* s, auto** e) {
        return f(a, b, alpha, c, s, e);
      },
      [&] { at::Tensor made = at::add(x, y); });
  compare(
      "aclnnMul",
      [f = phase1<T, T, T>("aclnnMul"), a, b, c](auto* s, auto** e) { return f(a, b, c, s, e); },
      [&] { at::Tensor made = at::mul(x, y); });
  compare(
      "aclnnMatmul",
      [f = phase1<T, T, T, int8_t>("aclnnMatmul"), a, b, c](auto* s, auto** e) {
        return f(a, b, c, 0, s, e);
      },
      [&] { at::Tensor made = at::matmul(x, y); });
  compare(
      "aclnnSoftmax",
      [f = phase1<T, int64_t, T>("aclnnSoftmax"), a, c](auto* s, auto** e) {
        return f(a, -1, c, s, e);
      },
      [&] { at::Tensor made = at::softmax(x, -1); });
  compare(
      "aclnnInplaceMul",
      [f = phase1<T, T>("aclnnInplaceMul"), a, b](auto* s, auto** e) { return f(a, b, s, e); },
      [&] { x.mul_(y); });
}
