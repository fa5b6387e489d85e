/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of an operator that ATen computes, right (0) and with one mistake each: 1 and 9 read
 * the result before the stream is synchronised, 2 has freed the input, 3 never wrote it, 4
 * describes more memory than there is, 5 reads on another stream. 6 runs a plan again, 7 sets an
 * address, 8 adds tensors of sizes that do not go together, 10 has an alpha that is a truth value.
 */
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_cat.h"

static void must(int good, const char* what) {
  if (good) return;
  printf("%s: %s\n", what, aclGetRecentErrMsg());
  exit(1);
}

int main(int argc, char** argv) {
  const int mistake = argc > 1 ? atoi(argv[1]) : 0;
  const size_t bytes = mistake == 8 ? 20 : 16;
  const int out_of_place = mistake == 4 || mistake == 8;
  float x[5] = {0, 1, 2, 3, 4};
  int64_t shape[1] = {4}, large[1] = {5};
  void *a, *b, *c = NULL;
  aclrtStream stream, other;
  aclOpExecutor* executor;
  uint64_t size;
  aclTensor *in, *out;
  float value = 2;
  aclScalar* alpha;
  must(aclInit(NULL) == 0 && aclrtSetDevice(0) == 0, "aclInit");
  must(aclrtCreateStream(&stream) == 0 && aclrtCreateStream(&other) == 0, "aclrtCreateStream");
  aclrtMalloc(&a, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc(&b, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  if (mistake != 3) aclrtMemcpy(a, bytes, x, bytes, ACL_MEMCPY_HOST_TO_DEVICE);
  if (out_of_place) aclrtMemcpy(b, bytes, x, bytes, ACL_MEMCPY_HOST_TO_DEVICE);
  in = aclCreateTensor(out_of_place ? large : shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND,
                       out_of_place ? large : shape, 1, a);
  out = aclCreateTensor(mistake == 4 ? large : shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND,
                        mistake == 4 ? large : shape, 1, b);
  alpha = aclCreateScalar(&value, mistake == 10 ? ACL_BOOL : ACL_FLOAT);
  if (aclnnAddGetWorkspaceSize(in, out_of_place ? out : in, alpha, out, &size, &executor) != 0) {
    printf("%s\n", aclGetRecentErrMsg());
    return 0;
  }
  if (mistake == 6) must(aclSetAclOpExecutorRepeatable(executor) == 0, "repeatable");
  if (mistake == 7 && aclSetInputTensorAddr(executor, 0, in, b) != 0)
    printf("%s\n", aclGetRecentErrMsg());
  if (mistake == 2) aclrtFree(a);
  if (aclnnAdd(NULL, size, executor, stream) != 0) printf("%s\n", aclGetRecentErrMsg());
  if (mistake == 5) {
    aclTensor* again = aclCreateTensor(shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, shape, 1, b);
    uint64_t more;
    aclOpExecutor* second;
    must(aclnnInplaceAddGetWorkspaceSize(again, in, alpha, &more, &second) == 0, "InplaceAdd");
    must(aclnnInplaceAdd(NULL, more, second, other) == 0, "aclnnInplaceAdd");
    aclDestroyTensor(again);
  }
  if (mistake == 6) {
    x[0] = 10;
    aclrtSynchronizeStream(stream);
    aclrtMemcpy(a, bytes, x, bytes, ACL_MEMCPY_HOST_TO_DEVICE);
    must(aclnnAdd(NULL, size, executor, stream) == 0, "again");
  }
  if (mistake == 9) { /* its phase 2 waits for the stream, but that is not known to programs */
    aclTensor* more;
    aclrtMalloc(&c, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
    more = aclCreateTensor(shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, shape, 1, c);
    must(aclnnAddGetWorkspaceSize(in, in, alpha, more, &size, &executor) == 0, "second");
    must(aclnnAdd(NULL, size, executor, stream) == 0, "second");
    aclDestroyTensor(more);
  }
  if (mistake != 1 && mistake != 9) aclrtSynchronizeStream(stream);
  aclrtSynchronizeStream(other);
  aclrtMemcpy(x, bytes, b, bytes, ACL_MEMCPY_DEVICE_TO_HOST);
  printf("%g %g %g %g\n", x[0], x[1], x[2], x[3]);
  if (mistake == 6) aclDestroyAclOpExecutor(executor);
  aclDestroyScalar(alpha);
  aclDestroyTensor(in);
  aclDestroyTensor(out);
  if (mistake != 2) aclrtFree(a);
  aclrtFree(b);
  if (c != NULL) {
    aclrtSynchronizeStream(stream);
    aclrtFree(c);
  }
  aclrtDestroyStream(stream);
  aclrtDestroyStream(other);
  aclrtResetDevice(0);
  aclFinalize();
  return 0;
}
