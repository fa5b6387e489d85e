/* SPDX-License-Identifier: Apache-2.0
 * Both phases of operators that ATen computes on a thread with little stack, beginning with the
 * first call of the process, which loads PyTorch: prints "good", or what was wrong. The argument is
 * the size of the stack in bytes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_matmul.h"

#define SIDE 64

static int wrong = 0;

static void check(int right, const char* what) {
  if (right) return;
  printf("not so: %s; %s\n", what, aclGetRecentErrMsg());
  wrong = 1;
}
#define CHECK(what) check(what, #what)

static float x[SIDE * SIDE], y[SIDE * SIDE];

static aclTensor* tensor(float* data, int64_t rank, int64_t side, aclDataType dtype) {
  const int64_t shapes[2][4] = {{side, side}, {1, 1, side, side}};
  const int64_t strides[2][4] = {{side, 1}, {side * side, side * side, side, 1}};
  const int64_t* shape = shapes[rank == 4];
  return aclCreateTensor(shape, (uint64_t)rank, dtype, strides[rank == 4], 0, ACL_FORMAT_ND, shape,
                         (uint64_t)rank, data);
}

static void add(void) {
  uint64_t size;
  aclOpExecutor* executor = NULL;
  float factor = 2;
  aclScalar* alpha = aclCreateScalar(&factor, ACL_FLOAT);
  aclTensor *in = tensor(x, 2, SIDE, ACL_FLOAT), *out = tensor(y, 2, SIDE, ACL_FLOAT);
  aclTensor* small = tensor(y, 2, 3, ACL_FLOAT);
  CHECK(aclnnAddGetWorkspaceSize(in, in, alpha, out, &size, &executor) == 0);
  CHECK(aclnnAdd(NULL, size, executor, NULL) == 0);
  CHECK(y[5] == 3 * x[5]);
  CHECK(aclnnAddGetWorkspaceSize(in, in, alpha, small, &size, &executor) == 161002);
  CHECK(strstr(aclGetRecentErrMsg(), "aclnnAdd: out must have") != NULL);
  aclDestroyTensor(small);
  aclDestroyTensor(out);
  aclDestroyTensor(in);
  aclDestroyScalar(alpha);
}

/* bfloat16: a kernel that oneDNN compiles. */
static void matmul(void) {
  uint64_t size;
  aclOpExecutor* executor = NULL;
  aclTensor *in = tensor(x, 2, SIDE, ACL_BF16), *out = tensor(y, 2, SIDE, ACL_BF16);
  CHECK(aclnnMatmulGetWorkspaceSize(in, in, out, 0, &size, &executor) == 0);
  CHECK(aclnnMatmul(NULL, size, executor, NULL) == 0);
  aclDestroyTensor(out);
  aclDestroyTensor(in);
}

static void convolution(void) {
  const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
  uint64_t size;
  aclOpExecutor* executor = NULL;
  aclTensor *in = tensor(x, 4, SIDE, ACL_FLOAT), *weight = tensor(x, 4, 3, ACL_FLOAT);
  aclTensor* out = tensor(y, 4, SIDE - 2, ACL_FLOAT);
  aclIntArray *one = aclCreateIntArray(ones, 2), *zero = aclCreateIntArray(zeros, 2);
  CHECK(aclnnConvolutionGetWorkspaceSize(in, weight, NULL, one, zero, one, 0, zero, 1, out, 0,
                                         &size, &executor) == 0);
  CHECK(aclnnConvolution(NULL, size, executor, NULL) == 0);
  aclDestroyIntArray(one);
  aclDestroyIntArray(zero);
  aclDestroyTensor(out);
  aclDestroyTensor(weight);
  aclDestroyTensor(in);
}

static void* work(void* unused) {
  CHECK(aclrtSetDevice(0) == 0);
  add();
  matmul();
  convolution();
  return unused;
}

int main(int count, char** words) {
  pthread_attr_t attributes;
  pthread_t thread;
  int i;
  for (i = 0; i < SIDE * SIDE; ++i) x[i] = (float)(i % 7);
  pthread_attr_init(&attributes);
  CHECK(count == 2 && pthread_attr_setstacksize(&attributes, (size_t)atol(words[1])) == 0);
  CHECK(pthread_create(&thread, &attributes, work, NULL) == 0);
  pthread_join(thread, NULL);
  if (!wrong) printf("good\n");
  return wrong;
}
