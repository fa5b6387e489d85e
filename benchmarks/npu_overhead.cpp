// SPDX-License-Identifier: Apache-2.0
// What a small operator that ATen computes costs beside ATen itself, on 8 x 8: tensors made and
// both phases; both phases; phase 2 alone; by turns with the operator of ATen. Nanoseconds,
// medians.
//
// g++ -O2 -std=c++20 -I HOME/include -I TORCH/include benchmarks/npu_overhead.cpp
//     -L TORCH/lib -Wl,-rpath,TORCH/lib -ltorch_cpu -lc10 -ldl -o npu_overhead
// (HOME: `openaclnn home`; TORCH: the folder of the installed torch)
// LD_LIBRARY_PATH=$(openaclnn home --aten)/lib64 ./npu_overhead [LIBRARY]
// LIBRARY: libopapi.so, what C programs link (default), or libaclnn_math.so, what torch_npu opens.
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

const char* library_of_operators = "libopapi.so";

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

constexpr int kCalls = 50;

template <class F>
double nanoseconds(F f) {
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) f(i);
  const std::chrono::duration<double, std::nano> all = std::chrono::steady_clock::now() - begin;
  return all.count() / kCalls;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// An argument that is made for each call.
struct Made {
  const at::Tensor* tensor;
};
struct Alpha {};

auto* create_tensor = find<decltype(aclCreateTensor)>("libascendcl.so", "aclCreateTensor");
auto* destroy_tensor = find<decltype(aclDestroyTensor)>("libascendcl.so", "aclDestroyTensor");
auto* create_scalar = find<decltype(aclCreateScalar)>("libascendcl.so", "aclCreateScalar");
auto* destroy_scalar = find<decltype(aclDestroyScalar)>("libascendcl.so", "aclDestroyScalar");

T make(Made argument) {
  const at::Tensor& x = *argument.tensor;
  const auto rank = static_cast<uint64_t>(x.dim());
  return create_tensor(x.sizes().data(), rank, ACL_FLOAT, x.strides().data(), 0, ACL_FORMAT_ND,
                       x.sizes().data(), rank, x.data_ptr());
}
S make(Alpha) {
  float one = 1;
  return create_scalar(&one, ACL_FLOAT);
}
int8_t make(int8_t value) { return value; }
void drop(T tensor) { check(destroy_tensor(tensor)); }
void drop(S scalar) { check(destroy_scalar(scalar)); }
void drop(int8_t) {}

template <class Aten, class... A>
void compare(const std::string& name, Aten aten, A... arguments) {
  using Plan = int32_t(decltype(make(arguments))..., uint64_t*, aclOpExecutor**);
  auto* plan = find<Plan>(library_of_operators, name + "GetWorkspaceSize");
  auto* run =
      find<int32_t(void*, uint64_t, aclOpExecutor*, aclrtStream)>(library_of_operators, name);
  std::vector<double> all, both, second, theirs;
  std::vector<aclOpExecutor*> executors(kCalls);
  uint64_t size = 0;
  for (int i = 0; i < 2001; ++i) {
    all.push_back(nanoseconds([&](int) {
      [&](auto... made) {
        aclOpExecutor* executor = nullptr;
        check(plan(made..., &size, &executor));
        check(run(nullptr, size, executor, nullptr));
        (drop(made), ...);
      }(make(arguments)...);
    }));
    [&](auto... made) {
      both.push_back(nanoseconds([&](int) {
        aclOpExecutor* executor = nullptr;
        check(plan(made..., &size, &executor));
        check(run(nullptr, size, executor, nullptr));
      }));
      for (aclOpExecutor*& executor : executors) check(plan(made..., &size, &executor));
      second.push_back(nanoseconds(
          [&](int k) { check(run(nullptr, size, executors[static_cast<size_t>(k)], nullptr)); }));
      (drop(made), ...);
    }(make(arguments)...);
    theirs.push_back(nanoseconds([&](int) { aten(); }));
  }
  std::printf("%-16s %8.0f %8.0f %8.0f %8.0f\n", name.c_str(), median(all), median(both),
              median(second), median(theirs));
}

}  // namespace

int main(int count, char** words) {
  if (count > 1) library_of_operators = words[1];
  const at::AutoDispatchBelowADInplaceOrView below;  // without autograd, as the library calls
  check(find<decltype(aclrtSetDevice)>("libascendcl.so", "aclrtSetDevice")(0));
  const at::Tensor x = at::rand({8, 8}), y = at::rand({8, 8}), out = at::empty({8, 8});
  const Made a{&x}, b{&y}, c{&out};
  std::printf("%-16s %8s %8s %8s %8s\n", "ns", "all", "phases", "phase 2", "ATen");
  compare("aclnnAdd", [&] { at::add(x, y); }, a, b, Alpha(), c);
  compare("aclnnRelu", [&] { at::relu(x); }, a, c);
  compare("aclnnMatmul", [&] { at::matmul(x, y); }, a, b, c, int8_t{0});
  compare("aclnnExp", [&] { at::exp(x); }, a, c);
  compare("aclnnMul", [&] { at::mul(x, y); }, a, b, c);
  compare("aclnnInplaceMul", [&] { x.mul_(y); }, a, b);
}
