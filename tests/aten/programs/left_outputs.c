/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that ATen computes and that do not write all of their outputs: 0 reads what they wrote,
 * and what the program had cleared before; 1 reads the statistics of a batch norm outside training,
 * 2 the elements past those that Nonzero found. 0 also fills those while Nonzero waits in its
 * stream. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_batch_norm.h"
#include "aclnnop/aclnn_nonzero.h"

static void must(int good, const char* what) {
  if (good) return;
  printf("%s: %s\n", what, aclGetRecentErrMsg());
  exit(1);
}
#define MUST(what) must((what) == 0, #what)

static void* memory(size_t bytes, int cleared) {
  void* made = NULL;
  MUST(aclrtMalloc(&made, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  if (cleared) MUST(aclrtMemset(made, bytes, 0, bytes));
  return made;
}

static aclTensor* tensor(void* data, int64_t rows, int64_t columns, aclDataType dtype) {
  const int64_t shape[] = {rows, columns}, strides[] = {columns, 1};
  const int one = rows == 0;
  return aclCreateTensor(shape + one, one ? 1 : 2, dtype, strides + one, 0, ACL_FORMAT_ND,
                         shape + one, one ? 1 : 2, data);
}

static void read(const void* from, size_t bytes) {
  char to[64];
  MUST(aclrtMemcpy(to, sizeof to, from, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
}

static void batch_norm(int mistake) {
  float* x = memory(24, 1);
  float *mean = memory(12, 1), *variance = memory(12, 1), *out = memory(24, 0);
  float *saved = memory(12, mistake != 1), *scale = memory(12, mistake != 1);
  aclTensor* tensors[] = {tensor(x, 2, 3, ACL_FLOAT),        tensor(mean, 0, 3, ACL_FLOAT),
                          tensor(variance, 0, 3, ACL_FLOAT), tensor(out, 2, 3, ACL_FLOAT),
                          tensor(saved, 0, 3, ACL_FLOAT),    tensor(scale, 0, 3, ACL_FLOAT)};
  uint64_t size;
  aclOpExecutor* executor;
  int i;
  MUST(aclnnBatchNormGetWorkspaceSize(tensors[0], NULL, NULL, tensors[1], tensors[2], 0, 0.1, 1e-5,
                                      tensors[3], tensors[4], tensors[5], &size, &executor));
  MUST(aclnnBatchNorm(NULL, size, executor, NULL));
  MUST(aclrtSynchronizeStream(NULL));
  read(out, 24);
  read(saved, 12);
  for (i = 0; i < 6; ++i) MUST(aclDestroyTensor(tensors[i]));
  MUST(aclrtFree(x));
  MUST(aclrtFree(mean));
  MUST(aclrtFree(variance));
  MUST(aclrtFree(out));
  MUST(aclrtFree(saved));
  MUST(aclrtFree(scale));
}

static void nonzero(int mistake) {
  const float values[] = {0, 1, 0, 1};
  float* x = memory(16, 1);
  int64_t* places = memory(32, 0);
  aclTensor *in = tensor(x, 0, 4, ACL_FLOAT), *out = tensor(places, 4, 1, ACL_INT64);
  uint64_t size;
  aclOpExecutor* executor;
  MUST(aclrtMemcpy(x, 16, values, 16, ACL_MEMCPY_HOST_TO_DEVICE));
  MUST(aclnnNonzeroGetWorkspaceSize(in, out, &size, &executor));
  MUST(aclnnNonzero(NULL, size, executor, NULL));
  MUST(aclrtSynchronizeStream(NULL));
  read(places, mistake == 2 ? 32 : 16);
  MUST(aclDestroyTensor(in));
  MUST(aclDestroyTensor(out));
  MUST(aclrtFree(x));
  MUST(aclrtFree(places));
}

static void nothing(void* unused) { (void)unused; }

static void filled_behind(void) {
  const float values[] = {0, 1, 0, 1};
  const uint64_t self = (uint64_t)pthread_self();
  float* x = memory(16, 1);
  int64_t* places = memory(32, 0);
  aclTensor *in = tensor(x, 0, 4, ACL_FLOAT), *out = tensor(places, 4, 1, ACL_INT64);
  uint64_t size;
  aclOpExecutor* executor;
  aclrtStream stream;
  MUST(aclrtCreateStream(&stream));
  MUST(aclrtMemcpy(x, 16, values, 16, ACL_MEMCPY_HOST_TO_DEVICE));
  MUST(aclnnNonzeroGetWorkspaceSize(in, out, &size, &executor));
  MUST(aclrtSubscribeReport(self, stream));
  MUST(aclrtLaunchCallback(nothing, NULL, ACL_CALLBACK_BLOCK, stream));  // the stream waits for it
  MUST(aclnnNonzero(NULL, size, executor, stream));
  MUST(aclrtMemsetAsync(places + 2, 16, 0, 16, stream));
  MUST(aclrtProcessReport(10000));
  MUST(aclrtSynchronizeStream(stream));
  MUST(aclrtUnSubscribeReport(self, stream));
  read(places, 32);
  MUST(aclrtDestroyStream(stream));
  MUST(aclDestroyTensor(in));
  MUST(aclDestroyTensor(out));
  MUST(aclrtFree(x));
  MUST(aclrtFree(places));
}

int main(int count, char** words) {
  const int mistake = count > 1 ? atoi(words[1]) : 0;
  MUST(aclInit(NULL));
  MUST(aclrtSetDevice(0));
  batch_norm(mistake);
  nonzero(mistake);
  if (mistake == 0) filled_behind();
  MUST(aclrtResetDevice(0));
  MUST(aclFinalize());
  return 0;
}
