/* SPDX-License-Identifier: Apache-2.0 */
/* Median nanoseconds of both phases of aclnnLeakyRelu on 16 elements, with tensors made before;
 * overhead.py compiles and runs it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_leaky_relu.h"

enum { kSamples = 101, kPairs = 2000, kElements = 16 };

static void check(int32_t status, const char* what) {
  if (status == 0) return;
  const char* sentence = aclGetRecentErrMsg();
  fprintf(stderr, "%s: %d %s\n", what, status, sentence ? sentence : "");
  exit(1);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

int main(void) {
  const int64_t n = kElements;
  float value = 0.01f, in[kElements] = {1.5f, -1.5f}, out[kElements];
  check(aclInit(NULL), "aclInit");
  check(aclrtSetDevice(0), "aclrtSetDevice");
  aclTensor* x = aclCreateTensor(&n, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &n, 1, in);
  aclTensor* y = aclCreateTensor(&n, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &n, 1, out);
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);
  double samples[kSamples];
  for (int k = 0; k < kSamples; ++k) {
    const double start = now();
    for (int i = 0; i < kPairs; ++i) {
      uint64_t size = 0;
      aclOpExecutor* executor = NULL;
      check(aclnnLeakyReluGetWorkspaceSize(x, slope, y, &size, &executor), "phase 1");
      check(aclnnLeakyRelu(NULL, size, executor, NULL), "phase 2");
    }
    check(aclrtSynchronizeStream(NULL), "aclrtSynchronizeStream");
    samples[k] = (now() - start) / kPairs;
  }
  qsort(samples, kSamples, sizeof *samples, compare);
  printf("%g\n", samples[kSamples / 2]);
  aclDestroyTensor(x);
  aclDestroyTensor(y);
  aclDestroyScalar(slope);
  return aclFinalize();
}
