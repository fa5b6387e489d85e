// SPDX-License-Identifier: Apache-2.0
// Tensors, scalars, arrays and lists: what is copied, what is refused, and that a wrong handle gets
// a status.
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"
#include "check.h"
#include "rounds.h"

namespace {

using Call = aclnnStatus (*)(const aclTensor*, int64_t**, uint64_t*);

std::vector<int64_t> ask(Call call, const aclTensor* tensor) {
  int64_t* values = nullptr;
  uint64_t count = 0;
  CHECK_EQ(call(tensor, &values, &count), 0);
  std::vector<int64_t> result(values, values + count);
  delete[] values;
  return result;
}

aclTensor* make(std::vector<int64_t> dims, aclDataType dtype = ACL_FLOAT) {
  return aclCreateTensor(dims.data(), dims.size(), dtype, nullptr, 0, ACL_FORMAT_ND, dims.data(),
                         dims.size(), nullptr);
}

void tensor_returns_what_it_was_given() {
  int64_t view[] = {2, 3};
  int64_t strides[] = {1, 2};
  int64_t storage[] = {10};
  float data[10];
  aclTensor* t =
      aclCreateTensor(view, 2, ACL_FLOAT16, strides, 4, ACL_FORMAT_NCHW, storage, 1, data);
  view[0] = strides[0] = storage[0] = 99;  // everything was copied
  CHECK(t != nullptr);
  CHECK((ask(aclGetViewShape, t) == std::vector<int64_t>{2, 3}));
  CHECK((ask(aclGetViewStrides, t) == std::vector<int64_t>{1, 2}));
  CHECK((ask(aclGetStorageShape, t) == std::vector<int64_t>{10}));
  int64_t offset = 0;
  CHECK_EQ(aclGetViewOffset(t, &offset), 0);
  CHECK_EQ(offset, 4);
  aclFormat format = ACL_FORMAT_ND;
  CHECK_EQ(aclGetFormat(t, &format), 0);
  CHECK_EQ(format, ACL_FORMAT_NCHW);
  aclDataType dtype = ACL_FLOAT;
  CHECK_EQ(aclGetDataType(t, &dtype), 0);
  CHECK_EQ(dtype, ACL_FLOAT16);
  void* address = nullptr;
  CHECK_EQ(aclGetRawTensorAddr(t, &address), 0);
  CHECK_EQ(address, data);
  CHECK_EQ(aclSetRawTensorAddr(t, data + 1), 0);
  CHECK_EQ(aclGetRawTensorAddr(t, &address), 0);
  CHECK_EQ(address, data + 1);

  const int64_t other[] = {4, 0, 5};
  CHECK_EQ(aclInitTensor(t, other, 3, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, other, 3, nullptr), 0);
  CHECK((ask(aclGetViewShape, t) == std::vector<int64_t>{4, 0, 5}));
  const int64_t negative[] = {-1};
  CHECK_FAILS(
      aclInitTensor(t, negative, 1, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr),
      ACLNN_ERR_PARAM_INVALID, "aclInitTensor: viewDims[0] must not be negative, but got -1");
  CHECK((ask(aclGetViewShape, t) == std::vector<int64_t>{4, 0, 5}));  // unchanged
  CHECK_EQ(aclDestroyTensor(t), 0);
}

void tensor_shapes() {
  aclTensor* scalar =
      aclCreateTensor(nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr);
  CHECK(scalar != nullptr);
  CHECK(ask(aclGetViewShape, scalar).empty());
  CHECK_EQ(aclDestroyTensor(scalar), 0);

  aclTensor* contiguous = make({2, 3, 4});
  CHECK((ask(aclGetViewStrides, contiguous) == std::vector<int64_t>{12, 4, 1}));
  CHECK_EQ(aclDestroyTensor(contiguous), 0);

  aclTensor* deep = make(std::vector<int64_t>(25, 1));
  CHECK(deep != nullptr);
  CHECK_EQ(aclDestroyTensor(deep), 0);
}

void tensor_refusals() {
  const int64_t d[] = {2, 3};
  const int64_t bad[] = {2, -3};
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  const auto refused = [](const aclTensor* tensor, const char* sentence) {
    CHECK(tensor == nullptr);
    CHECK_TEXT(sentence);
  };
  const auto nd = ACL_FORMAT_ND;
  refused(make(std::vector<int64_t>(26, 1)), "viewDimsNum must be at most 25, but got 26");
  refused(aclCreateTensor(nullptr, 2, ACL_FLOAT, nullptr, 0, nd, d, 2, nullptr),
          "aclCreateTensor: viewDims must not be NULL");
  refused(aclCreateTensor(d, 2, ACL_FLOAT, nullptr, 0, nd, nullptr, 2, nullptr),
          "storageDims must not be NULL");
  refused(aclCreateTensor(bad, 2, ACL_FLOAT, nullptr, 0, nd, d, 2, nullptr),
          "viewDims[1] must not be negative, but got -3");
  refused(aclCreateTensor(d, 2, ACL_FLOAT, bad, 0, nd, d, 2, nullptr),
          "stride[1] must not be negative, but got -3");
  refused(aclCreateTensor(d, 2, ACL_FLOAT, nullptr, 0, nd, bad, 2, nullptr),
          "storageDims[1] must not be negative");
  refused(aclCreateTensor(d, 2, ACL_FLOAT, nullptr, -1, nd, d, 2, nullptr),
          "offset must not be negative, but got -1");
  refused(aclCreateTensor(huge, 2, ACL_FLOAT, nullptr, 0, nd, d, 2, nullptr),
          "viewDims must have at most 2^62 elements, but got [1099511627776, 1099511627776]");
  refused(aclCreateTensor(d, 2, static_cast<aclDataType>(5), nullptr, 0, nd, d, 2, nullptr),
          "dataType must be an aclDataType, but got 5");
  refused(aclCreateTensor(d, 2, ACL_DT_UNDEFINED, nullptr, 0, nd, d, 2, nullptr), "but got -1");
}

void wrong_handles() {
  int64_t number = 0;
  int64_t* numbers = nullptr;
  uint64_t count = 0;
  void* address = nullptr;
  aclDataType dtype;
  aclFormat format;
  aclTensor* stale = make({1});
  CHECK_EQ(aclDestroyTensor(stale), 0);
  int on_stack[64] = {};
  aclTensor* live = make({1});
  auto* inside = reinterpret_cast<aclTensor*>(reinterpret_cast<char*>(live) + 16);
  auto* foreign = reinterpret_cast<aclTensor*>(on_stack);
  auto* low = reinterpret_cast<aclTensor*>(uintptr_t{1});
  for (aclTensor* wrong : {stale, foreign, inside, low}) {
    CHECK_FAILS(aclDestroyTensor(wrong), 161002, "aclDestroyTensor: tensor 0x");
    CHECK_FAILS(aclGetViewShape(wrong, &numbers, &count), 161002, "AclNN_Parameter_Error(EZ1001)");
    CHECK_EQ(aclGetViewStrides(wrong, &numbers, &count), 161002);
    CHECK_EQ(aclGetStorageShape(wrong, &numbers, &count), 161002);
    CHECK_EQ(aclGetViewOffset(wrong, &number), 161002);
    CHECK_EQ(aclGetFormat(wrong, &format), 161002);
    CHECK_EQ(aclGetDataType(wrong, &dtype), 161002);
    CHECK_EQ(aclGetRawTensorAddr(wrong, &address), 161002);
    CHECK_EQ(aclSetRawTensorAddr(wrong, nullptr), 161002);
    CHECK_EQ(
        aclInitTensor(wrong, nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr),
        161002);
    CHECK(aclCreateTensorList(&wrong, 1) == nullptr);
  }
  CHECK_FAILS(aclGetViewShape(nullptr, &numbers, &count), 161001, "tensor must not be NULL");
  CHECK_EQ(aclGetViewShape(live, nullptr, &count), 161001);
  CHECK_EQ(aclGetViewShape(live, &numbers, nullptr), 161001);
  CHECK_EQ(aclGetViewOffset(live, nullptr), 161001);
  CHECK_EQ(aclGetFormat(live, nullptr), 161001);
  CHECK_EQ(aclGetDataType(live, nullptr), 161001);
  CHECK_EQ(aclGetRawTensorAddr(live, nullptr), 161001);
  CHECK_EQ(aclSetRawTensorAddr(nullptr, nullptr), 161001);
  CHECK_EQ(
      aclInitTensor(nullptr, nullptr, 0, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr),
      161001);
  CHECK_EQ(aclDestroyTensor(live), 0);
  CHECK_EQ(aclDestroyTensor(nullptr), 0);
  CHECK_EQ(aclDestroyScalar(nullptr), 0);
  CHECK_EQ(aclDestroyIntArray(nullptr), 0);
  CHECK_EQ(aclDestroyFloatArray(nullptr), 0);
  CHECK_EQ(aclDestroyBoolArray(nullptr), 0);
  CHECK_EQ(aclDestroyTensorList(nullptr), 0);
  CHECK_EQ(aclDestroyScalarList(nullptr), 0);
  std::unique_ptr<aclTensor, aclnnStatus (*)(const aclTensor*)> owned(make({1}), aclDestroyTensor);
}

void scalars() {
  double value[2] = {1.5, 0};
  for (aclDataType dtype :
       {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_INT8, ACL_INT16, ACL_INT32, ACL_INT64, ACL_UINT8,
        ACL_UINT16, ACL_UINT32, ACL_UINT64, ACL_BOOL, ACL_DOUBLE, ACL_COMPLEX64, ACL_COMPLEX128}) {
    aclScalar* scalar = aclCreateScalar(value, dtype);
    CHECK(scalar != nullptr);
    CHECK_EQ(aclDestroyScalar(scalar), 0);
    CHECK_FAILS(aclDestroyScalar(scalar), 161002, "aclDestroyScalar: scalar 0x");
  }
  CHECK(aclCreateScalar(nullptr, ACL_FLOAT) == nullptr);
  CHECK_TEXT("aclCreateScalar: value must not be NULL");
  CHECK(aclCreateScalar(value, ACL_STRING) == nullptr);
  CHECK_TEXT("dataType must have whole bytes per element, but got STRING (13)");
  CHECK(aclCreateScalar(value, ACL_DT_UNDEFINED) == nullptr);
}

template <class T, class Create, class Destroy, class Size>
void array(Create create, Destroy destroy, Size size) {
  T values[3] = {};
  uint64_t count = 99;
  auto* empty = create(nullptr, 0);
  CHECK_EQ(size(empty, &count), 0);
  CHECK_EQ(count, 0u);
  auto* three = create(values, 3);
  CHECK_EQ(size(three, &count), 0);
  CHECK_EQ(count, 3u);
  CHECK_EQ(size(three, nullptr), 161001);
  CHECK_EQ(size(nullptr, &count), 161001);
  CHECK(create(nullptr, 1) == nullptr);
  CHECK_TEXT("value must not be NULL");
  CHECK_EQ(destroy(empty), 0);
  CHECK_EQ(destroy(three), 0);
  CHECK_FAILS(destroy(three), 161002, "array 0x");
  CHECK_EQ(size(three, &count), 161002);
}

void lists() {
  const aclTensor* members[] = {make({1}), nullptr, make({2})};
  aclTensorList* list = aclCreateTensorList(members, 3);
  uint64_t count = 0;
  CHECK_EQ(aclGetTensorListSize(list, &count), 0);
  CHECK_EQ(count, 3u);
  CHECK_EQ(aclDestroyTensorList(list), 0);
  CHECK_EQ(aclDestroyTensor(members[0]), 161002);  // the list owned it
  CHECK_EQ(aclDestroyTensorList(list), 161002);

  float one = 1;
  const aclScalar* numbers[] = {aclCreateScalar(&one, ACL_FLOAT)};
  aclScalarList* scalar_list = aclCreateScalarList(numbers, 1);
  CHECK_EQ(aclGetScalarListSize(scalar_list, &count), 0);
  CHECK_EQ(count, 1u);
  CHECK_EQ(aclDestroyScalarList(scalar_list), 0);
  CHECK_EQ(aclDestroyScalar(numbers[0]), 161002);
}

// If two threads destroy one list, one gets an error; the elements are destroyed once.
void a_list_destroyed_twice_at_once() {
  aclTensorList* list = nullptr;
  std::atomic<int> round{0}, done{0}, destroyed{0};
  Rounds rounds(2000, 1);
  const auto destroy = [&] {
    bool last = false;
    for (int i = 1; !last; ++i) {
      while (round != i) std::this_thread::yield();
      last = rounds.last();
      if (aclDestroyTensorList(list) == 0) ++destroyed;
      ++done;
    }
  };
  std::thread one(destroy), two(destroy);
  while (!rounds.last()) {
    rounds.begin();
    const aclTensor* members[] = {make({1}), make({2})};
    list = aclCreateTensorList(members, 2);
    round = rounds.done();
    while (done != 2 * round) std::this_thread::yield();
  }
  one.join();
  two.join();
  CHECK_EQ(destroyed, rounds.done());
}

void stale_handles_stay_stale() {
  aclTensor* stale = make({1});
  CHECK_EQ(aclDestroyTensor(stale), 0);
  for (int i = 0; i < 100; ++i) {
    aclTensor* other = make({1});
    CHECK(other != stale);
    CHECK_EQ(aclDestroyTensor(stale), 161002);
    CHECK_EQ(aclDestroyTensor(other), 0);
  }
}

void sizes_beyond_memory() {
  const int64_t value = 0;
  CHECK(aclCreateIntArray(&value, UINT64_MAX) == nullptr);
  CHECK_TEXT("aclCreateIntArray: out of memory: a list of 18446744073709551615 elements");
}

}  // namespace

int main() {
  tensor_returns_what_it_was_given();
  tensor_shapes();
  tensor_refusals();
  wrong_handles();
  scalars();
  array<int64_t>(aclCreateIntArray, aclDestroyIntArray, aclGetIntArraySize);
  array<float>(aclCreateFloatArray, aclDestroyFloatArray, aclGetFloatArraySize);
  array<bool>(aclCreateBoolArray, aclDestroyBoolArray, aclGetBoolArraySize);
  array<const aclTensor*>(aclCreateTensorList, aclDestroyTensorList, aclGetTensorListSize);
  array<const aclScalar*>(aclCreateScalarList, aclDestroyScalarList, aclGetScalarListSize);
  lists();
  a_list_destroyed_twice_at_once();
  stale_handles_stay_stale();
  sizes_beyond_memory();
  return check_result();
}
