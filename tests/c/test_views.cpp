// SPDX-License-Identifier: Apache-2.0
// Views that phase 1 must not accept, because an address would not fit or leave the storage.
#include <cstdint>
#include <vector>

#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"

namespace {

float values[8];

void refuse(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, int64_t offset,
            const std::vector<int64_t>& storage) {
  aclTensor* self = aclCreateTensor(shape.data(), shape.size(), ACL_FLOAT, strides.data(), offset,
                                    ACL_FORMAT_ND, storage.data(), storage.size(), values);
  aclTensor* out = aclCreateTensor(shape.data(), shape.size(), ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND,
                                   shape.data(), shape.size(), values);
  float slope = 0.5f;
  aclScalar* negative_slope = aclCreateScalar(&slope, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_FAILS(aclnnLeakyReluGetWorkspaceSize(self, negative_slope, out, &size, &executor), 161002,
              "aclnnLeakyRelu: self must stay inside its storage");
  CHECK_EQ(aclDestroyTensor(self), 0);
  CHECK_EQ(aclDestroyTensor(out), 0);
  CHECK_EQ(aclDestroyScalar(negative_slope), 0);
}

// An address so high that the view would wrap around to the first page.
void refuse_the_end_of_memory() {
  const int64_t shape[] = {8};
  const auto make = [&](void* data) {
    return aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, data);
  };
  auto* high = reinterpret_cast<void*>(~uintptr_t{0} - 15);
  aclTensor *self = make(high), *out = make(values);
  float slope = 0.5f;
  aclScalar* negative_slope = aclCreateScalar(&slope, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK_FAILS(aclnnLeakyReluGetWorkspaceSize(self, negative_slope, out, &size, &executor), 161002,
              "aclnnLeakyRelu: self must end inside the address space, but 32 bytes follow");
  CHECK_EQ(aclSetRawTensorAddr(self, values), 0);
  CHECK_EQ(aclnnLeakyReluGetWorkspaceSize(self, negative_slope, out, &size, &executor), 0);
  CHECK_EQ(aclSetInputTensorAddr(executor, 0, self, high), 0);
  CHECK_FAILS(aclnnLeakyRelu(nullptr, size, executor, nullptr), 161002,
              "aclnnLeakyRelu: self must end inside the address space, but 32 bytes follow");
  CHECK_EQ(aclDestroyAclOpExecutor(executor), 0);
  CHECK_EQ(aclDestroyTensor(self), 0);
  CHECK_EQ(aclDestroyTensor(out), 0);
  CHECK_EQ(aclDestroyScalar(negative_slope), 0);
}

// Says which bytes each tensor spans and how many acl has allocated there, if it has, whether phase
// 1 finds the overlap or phase 2 at addresses set since.
void refuse_an_overlap() {
  const int64_t shape[] = {8};
  void* memory = nullptr;
  CHECK_EQ(aclrtMalloc(&memory, 40, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  auto* bytes = static_cast<char*>(memory);
  const auto make = [&](void* data, int64_t offset) {
    const int64_t storage[] = {8 + offset}, strides[] = {1};
    return aclCreateTensor(shape, 1, ACL_FLOAT, strides, offset, ACL_FORMAT_ND, storage, 1, data);
  };
  const auto at = [](const void* address) {
    char text[32];
    std::snprintf(text, sizeof text, "%p", address);
    return std::string(text);
  };
  aclTensor *self = make(memory, 0), *out = make(memory, 1), *apart = make(values, 0);
  float slope = 0.5f;
  aclScalar* negative_slope = aclCreateScalar(&slope, ACL_FLOAT);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  const std::string must =
      "aclnnLeakyRelu: out must be the same view as self or share no memory with it, but overlaps "
      "it";
  CHECK_FAILS(aclnnLeakyReluGetWorkspaceSize(self, negative_slope, out, &size, &executor), 161002,
              must + ": out spans bytes 4 to 36 from " + at(memory) +
                  ", where 40 are allocated; self spans bytes 0 to 32 from " + at(memory) +
                  ", where 40 are allocated");
  CHECK_EQ(aclnnLeakyReluGetWorkspaceSize(self, negative_slope, apart, &size, &executor), 0);
  CHECK_EQ(aclSetOutputTensorAddr(executor, 0, apart, bytes + 16), 0);
  CHECK_FAILS(aclnnLeakyRelu(nullptr, size, executor, nullptr), 161002,
              must + " at the addresses set: out spans bytes 0 to 32 from " + at(bytes + 16) +
                  ", where 24 are allocated; self spans bytes 0 to 32 from " + at(memory) +
                  ", where 40 are allocated");
  CHECK_EQ(aclDestroyAclOpExecutor(executor), 0);
  for (aclTensor* tensor : {self, out, apart}) CHECK_EQ(aclDestroyTensor(tensor), 0);
  CHECK_EQ(aclDestroyScalar(negative_slope), 0);
  CHECK_EQ(aclrtFree(memory), 0);
}

}  // namespace

int main() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  for (const int64_t far : {int64_t{8}, int64_t{1} << 58, int64_t{1} << 62, INT64_MAX}) {
    refuse({}, {}, far, {8});
    refuse({1}, {1}, far, {8});
    refuse({2}, {far}, 0, {8});
    refuse({2, 2}, {far, far}, far, {8});
  }
  refuse_the_end_of_memory();
  refuse_an_overlap();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}
