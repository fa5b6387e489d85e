// SPDX-License-Identifier: Apache-2.0
// What kernel libraries read: openaclnn_read.h.
#include "acl/acl.h"
#include "aclnn/openaclnn_read.h"
#include "check.h"

namespace {

void tensors() {
  float memory[40] = {};
  const int64_t dims[] = {3, 4}, strides[] = {8, 2}, storage[] = {40};
  aclTensor* tensor =
      aclCreateTensor(dims, 2, ACL_FLOAT, strides, 5, ACL_FORMAT_ND, storage, 1, memory);
  openaclnnTensorView view;
  CHECK_EQ(openaclnnReadTensor(tensor, &view), 0);
  CHECK_EQ(view.rank, 2u);
  CHECK(view.data == memory + 5 && view.elementSize == 4 && view.dataType == ACL_FLOAT);
  CHECK(view.shape[0] == 3 && view.shape[1] == 4 && view.strides[0] == 8 && view.strides[1] == 2);
  CHECK_EQ(openaclnnReadTensor(tensor, nullptr), 161001);
  CHECK_EQ(openaclnnReadTensor(nullptr, &view), 161001);
  CHECK_EQ(aclDestroyTensor(tensor), 0);
  CHECK_EQ(openaclnnReadTensor(tensor, &view), 161002);
}

template <class T>
void scalar(T number, aclDataType dtype, double due) {
  aclScalar* scalar = aclCreateScalar(&number, dtype);
  double value = 0;
  CHECK_EQ(openaclnnReadScalar(scalar, &value), 0);
  CHECK_EQ(value, due);
  CHECK_EQ(openaclnnReadScalar(scalar, nullptr), 161001);
  CHECK_EQ(aclDestroyScalar(scalar), 0);
  CHECK_EQ(openaclnnReadScalar(scalar, &value), 161002);
}

void complex_scalar() {
  float number[] = {1, 2};
  double value = 7;
  aclGetRecentErrMsg();
  aclScalar* scalar = aclCreateScalar(number, ACL_COMPLEX64);
  CHECK_EQ(openaclnnReadScalar(scalar, &value), 161002);
  CHECK_TEXT("openaclnnReadScalar: scalar must be a real number, but is COMPLEX64");
  CHECK_EQ(value, 7);
  CHECK_EQ(aclDestroyScalar(scalar), 0);
}

template <class T, class Create, class Read, class Destroy>
void array(Create create, Read read, Destroy destroy) {
  const T given[] = {T(1), T(0), T(1)};
  auto* made = create(given, 3);
  const T* values = nullptr;
  uint64_t size = 0;
  CHECK_EQ(read(made, &values, &size), 0);
  CHECK_EQ(size, 3u);
  CHECK(values[0] == T(1) && values[1] == T(0) && values[2] == T(1));
  CHECK_EQ(read(made, nullptr, &size), 161001);
  CHECK_EQ(read(made, &values, nullptr), 161001);
  CHECK_EQ(read(nullptr, &values, &size), 161001);
  CHECK_EQ(destroy(made), 0);
  CHECK_EQ(read(made, &values, &size), 161002);
}

void lists() {
  double one = 1;
  const aclScalar* given[] = {aclCreateScalar(&one, ACL_DOUBLE)};
  aclScalarList* list = aclCreateScalarList(given, 1);
  const aclScalar* const* values = nullptr;
  uint64_t size = 0;
  CHECK_EQ(openaclnnReadScalarList(list, &values, &size), 0);
  CHECK(size == 1 && values[0] == given[0]);
  CHECK_EQ(aclDestroyScalarList(list), 0);
  const aclTensorList* none = nullptr;
  const aclTensor* const* tensors = nullptr;
  CHECK_EQ(openaclnnReadTensorList(none, &tensors, &size), 161001);
}

void refusals() {
  aclGetRecentErrMsg();
  CHECK_EQ(openaclnnRefuse("aclnnElu", 161002, "out must have the shape of self"), 161002);
  CHECK_TEXT("aclnnElu: out must have the shape of self");
  CHECK_EQ(openaclnnRefuse("aclnnElu", 0, "nothing"), 161002);
  CHECK_EQ(openaclnnRefuse(nullptr, 161002, "nothing"), 161001);
  CHECK_EQ(openaclnnRefuse("aclnnElu", 161002, nullptr), 161001);
}

}  // namespace

int main() {
  tensors();
  scalar<float>(0.5f, ACL_FLOAT, 0.5);
  scalar<double>(0.1, ACL_DOUBLE, 0.1);
  scalar<uint16_t>(0x3800, ACL_FLOAT16, 0.5);
  scalar<int64_t>(-7, ACL_INT64, -7);
  scalar<bool>(true, ACL_BOOL, 1);
  complex_scalar();
  array<int64_t>(aclCreateIntArray, openaclnnReadIntArray, aclDestroyIntArray);
  array<float>(aclCreateFloatArray, openaclnnReadFloatArray, aclDestroyFloatArray);
  array<bool>(aclCreateBoolArray, openaclnnReadBoolArray, aclDestroyBoolArray);
  lists();
  refusals();
  return check_result();
}
