/* SPDX-License-Identifier: Apache-2.0 */
/* What a C program pays: phase 1 + phase 2 of aclnnLeakyRelu, and how long a launch holds the
 * caller.
 *
 *   pair ELEMENTS     median ns of a pair on the default stream
 *   pair launch       64 Mi elements on a stream: us until the launch returns, elements of 1,024
 * samples not yet written then, us until the result is there
 *
 * overhead.py compiles it with the build line of CANN programs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_leaky_relu.h"

enum { kSamples = 101, kPairs = 2000 };

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

static double median(double* values, int count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

static void pair(aclTensor* x, aclScalar* slope, aclTensor* y, aclrtStream stream) {
  uint64_t size = 0;
  aclOpExecutor* executor = NULL;
  check(aclnnLeakyReluGetWorkspaceSize(x, slope, y, &size, &executor), "phase 1");
  check(aclnnLeakyRelu(NULL, size, executor, stream), "phase 2");
}

int main(int argc, char** argv) {
  const int launch = argc > 1 && strcmp(argv[1], "launch") == 0;
  const int64_t n = launch ? 64 << 20 : argc > 1 ? atoll(argv[1]) : 1024;
  const size_t bytes = n * sizeof(float);
  float value = 0.01f;
  float *in, *out;
  check(aclInit(NULL), "aclInit");
  check(aclrtSetDevice(0), "aclrtSetDevice");
  check(aclrtMalloc((void**)&in, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  check(aclrtMalloc((void**)&out, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  for (int64_t i = 0; i < n; ++i) in[i] = i % 2 ? 1.5f : -1.5f;
  aclTensor* x = aclCreateTensor(&n, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &n, 1, in);
  aclTensor* y = aclCreateTensor(&n, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, &n, 1, out);
  aclScalar* slope = aclCreateScalar(&value, ACL_FLOAT);

  if (launch) {
    aclrtStream stream;
    double returned[5], done[5], unwritten[5];
    check(aclrtCreateStream(&stream), "aclrtCreateStream");
    for (int k = 0; k < 5; ++k) {
      memset(out, 0xff, bytes);
      const double start = now();
      pair(x, slope, y, stream);
      returned[k] = now() - start;
      unwritten[k] = 0;
      for (int i = 0; i < 1024; ++i) {
        const float sample = *(volatile float*)&out[i * (n / 1024)];
        unwritten[k] += sample != sample;
      }
      check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
      done[k] = now() - start;
      if (out[0] != in[0] * value || out[n - 1] != in[n - 1])
        return fprintf(stderr, "wrong result\n"), 1;
    }
    printf("%g %g %g\n", median(returned, 5) / 1e3, median(unwritten, 5), median(done, 5) / 1e3);
    check(aclrtDestroyStream(stream), "aclrtDestroyStream");
  } else {
    double samples[kSamples];
    for (int k = 0; k < kSamples; ++k) {
      const double start = now();
      for (int i = 0; i < kPairs; ++i) pair(x, slope, y, NULL);
      check(aclrtSynchronizeStream(NULL), "aclrtSynchronizeStream");
      samples[k] = (now() - start) / kPairs;
    }
    printf("%g\n", median(samples, kSamples));
  }
  aclDestroyTensor(x);
  aclDestroyTensor(y);
  aclDestroyScalar(slope);
  aclrtFree(in);
  aclrtFree(out);
  return aclFinalize();
}
