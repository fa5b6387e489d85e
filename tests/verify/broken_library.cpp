// SPDX-License-Identifier: Apache-2.0
// Hardshrink as the library computes it, except for fp16, where it does what BROKEN says.
#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "acl/acl.h"
#include "aclnnop/aclnn_hardshrink.h"

namespace {

const aclTensor* g_self;
const aclTensor* g_out;

template <typename Function>
Function* real(const char* name) {
  static void* library = dlopen("libopapi_nn.so", RTLD_NOW);
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

bool broken(const char* how) {
  aclDataType dtype = ACL_DT_UNDEFINED;
  if (g_self == nullptr) return std::strcmp(getenv("BROKEN"), how) == 0;
  aclGetDataType(g_self, &dtype);
  return dtype == ACL_FLOAT16 && std::strcmp(getenv("BROKEN"), how) == 0;
}

std::uint16_t* elements(const aclTensor* tensor, std::uint64_t* count) {
  std::int64_t *shape = nullptr, offset = 0;
  std::uint64_t rank = 0;
  aclGetViewShape(tensor, &shape, &rank);
  *count = 1;
  for (std::uint64_t i = 0; i < rank; ++i) *count *= static_cast<std::uint64_t>(shape[i]);
  delete[] shape;
  aclGetViewOffset(tensor, &offset);
  void* address = nullptr;
  aclGetRawTensorAddr(tensor, &address);
  return static_cast<std::uint16_t*>(address) + offset;
}

void* memory_of(const aclTensor* tensor) {
  void* address = nullptr;
  aclGetRawTensorAddr(tensor, &address);
  return address;
}

// Whether a dim of several elements has stride 0.
bool is_expanded(const aclTensor* tensor) {
  std::int64_t *shape = nullptr, *strides = nullptr;
  std::uint64_t rank = 0;
  aclGetViewShape(tensor, &shape, &rank);
  aclGetViewStrides(tensor, &strides, &rank);
  bool found = false;
  for (std::uint64_t i = 0; i < rank; ++i) found |= shape[i] > 1 && strides[i] == 0;
  delete[] shape;
  delete[] strides;
  return found;
}

// As a kernel that loads whole blocks does; the values do not count.
void read_from(const std::uint16_t* first) {
  volatile std::uint16_t sum = 0;
  for (int i = 0; i < 2000; ++i) sum = static_cast<std::uint16_t>(sum + first[i]);
}

}  // namespace

extern "C" aclnnStatus aclnnHardshrinkGetWorkspaceSize(const aclTensor* self,
                                                       const aclScalar* lambd, aclTensor* out,
                                                       std::uint64_t* workspaceSize,
                                                       aclOpExecutor** executor) {
  g_self = self;
  g_out = out;
  if (broken("crash in phase 1")) {
    std::fprintf(stderr, "the last words\n");
    std::abort();
  }
  if (broken("status")) return 361001;
  aclnnStatus status = real<decltype(aclnnHardshrinkGetWorkspaceSize)>(
      "aclnnHardshrinkGetWorkspaceSize")(self, lambd, out, workspaceSize, executor);
  if (status != 0 && broken("writes size")) *workspaceSize = 0;
  if (status != 0 && broken("writes executor")) *executor = nullptr;
  if (status != 0 && broken("silent")) aclGetRecentErrMsg();
  return status != 0 && broken("accepts") ? 0 : status;
}

extern "C" aclnnStatus aclnnHardshrink(void* workspace, std::uint64_t workspaceSize,
                                       aclOpExecutor* executor, aclrtStream stream) {
  static std::uint16_t runs = 0;
  if (broken("crash")) raise(11);
  if (broken("exit")) _exit(7);
  if (broken("hang")) pause();
  if (broken("late status")) return 507015;
  if (broken("accepts") || broken("skips")) return 0;
  aclnnStatus status = real<decltype(aclnnHardshrink)>("aclnnHardshrink")(workspace, workspaceSize,
                                                                          executor, stream);
  aclrtSynchronizeStream(stream);
  std::uint64_t count = 0, inputs = 0;
  std::uint16_t* out = elements(g_out, &count);
  std::uint16_t* self = elements(g_self, &inputs);
  if (count == 0) return status;
  if (broken("wrong")) out[0] ^= 1;
  if (broken("outside")) out[-1] = 0;
  if (broken("input")) self[0] ^= 1;
  if (broken("unsteady")) out[0] = ++runs;
  if (broken("nothing")) std::memset(out, 0xA5, 2);
  if (broken("in place") && memory_of(g_self) == memory_of(g_out)) out[0] ^= 1;
  if (broken("same tensor") && g_self == g_out) out[0] ^= 1;
  if (broken("stride 0") && is_expanded(g_self)) out[0] ^= 1;
  if (broken("reads past the end")) read_from(self + inputs);
  if (broken("reads before")) read_from(self - 2000);
  return status;
}
