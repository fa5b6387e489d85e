/* SPDX-License-Identifier: Apache-2.0
 * fork after operators that ATen computed with several threads: the child computes too, and so do
 * new threads in it. Prints "good", or what was wrong. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_matmul.h"

#define SIDE 512

static int wrong = 0;

static void check(int right, const char* what) {
  if (right) return;
  printf("not so: %s; %s\n", what, aclGetRecentErrMsg());
  wrong = 1;
}
#define CHECK(what) check(what, #what)

static float* data[2];

static aclTensor* tensor(float* values, aclDataType dtype) {
  const int64_t shape[] = {SIDE, SIDE}, strides[] = {SIDE, 1};
  return aclCreateTensor(shape, 2, dtype, strides, 0, ACL_FORMAT_ND, shape, 2, values);
}

static void* compute(void* unused) {
  const aclDataType dtypes[] = {ACL_FLOAT, ACL_BF16};
  float factor = 2;
  aclScalar* alpha = aclCreateScalar(&factor, ACL_FLOAT);
  int i;
  CHECK(aclrtSetDevice(0) == 0);
  for (i = 0; i < 2; ++i) {
    uint64_t size;
    aclOpExecutor* executor = NULL;
    aclTensor *in = tensor(data[0], dtypes[i]), *out = tensor(data[1], dtypes[i]);
    CHECK(aclnnMatmulGetWorkspaceSize(in, in, out, 0, &size, &executor) == 0);
    CHECK(aclnnMatmul(NULL, size, executor, NULL) == 0);
    CHECK(aclnnAddGetWorkspaceSize(in, in, alpha, out, &size, &executor) == 0);
    CHECK(aclnnAdd(NULL, size, executor, NULL) == 0);
    aclDestroyTensor(out);
    aclDestroyTensor(in);
  }
  aclDestroyScalar(alpha);
  return unused;
}

/* In a child, in a child of that child, and on a new thread of each. */
static void fork_and_compute(int depth) {
  int status = -1;
  pid_t child = fork();
  if (child == 0) {
    pthread_t thread;
    alarm(30); /* a deadlock ends the child */
    compute(NULL);
    pthread_create(&thread, NULL, compute, NULL);
    pthread_join(thread, NULL);
    if (depth > 1) fork_and_compute(depth - 1);
    fflush(stdout);
    _exit(wrong);
  }
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

int main(void) {
  data[0] = calloc(SIDE * SIDE, sizeof(float));
  data[1] = calloc(SIDE * SIDE, sizeof(float));
  compute(NULL);
  fork_and_compute(2);
  compute(NULL);
  if (!wrong) printf("good\n");
  free(data[0]);
  free(data[1]);
  return wrong;
}
