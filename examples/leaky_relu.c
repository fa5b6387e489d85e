/* SPDX-License-Identifier: Apache-2.0 */
/* aclnnLeakyRelu from plain C, and what a refused call says.
 *
 *   source $(openaclnn home)/set_env.sh; H=$ASCEND_HOME_PATH
 *   gcc leaky_relu.c -I$H/include -L$H/lib64 -lopapi_nn -lascendcl -lnnopbase -o leaky_relu
 */
#include <stdio.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_leaky_relu.h"

#define CHECK(call)                                                      \
  do {                                                                   \
    const int status = (call);                                           \
    if (status != 0) {                                                   \
      printf("%s returned %d\n%s", #call, status, aclGetRecentErrMsg()); \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

int main(void) {
  CHECK(aclInit(NULL));
  CHECK(aclrtSetDevice(0));

  float x[6] = {-2, -1, 0, 1, 2, 3}, y[6];
  void *x_device, *y_device;
  CHECK(aclrtMalloc(&x_device, sizeof x, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMalloc(&y_device, sizeof y, ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK(aclrtMemcpy(x_device, sizeof x, x, sizeof x, ACL_MEMCPY_HOST_TO_DEVICE));

  const int64_t storage[] = {6}, shape[] = {3, 2}, wrong_shape[] = {2, 3};
  const int64_t strides[] = {1, 3}; /* x is (2, 3), and self its transpose, read where it is */
  aclTensor* self =
      aclCreateTensor(shape, 2, ACL_FLOAT, strides, 0, ACL_FORMAT_ND, storage, 1, x_device);
  aclTensor* out =
      aclCreateTensor(shape, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, storage, 1, y_device);
  aclTensor* wrong =
      aclCreateTensor(wrong_shape, 2, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, storage, 1, y_device);
  float slope = 0.5f;
  aclScalar* negative_slope = aclCreateScalar(&slope, ACL_FLOAT);

  uint64_t workspace_size = 0;
  aclOpExecutor* executor = NULL;
  CHECK(aclnnLeakyReluGetWorkspaceSize(self, negative_slope, out, &workspace_size, &executor));
  CHECK(aclnnLeakyRelu(NULL, workspace_size, executor, NULL)); /* NULL: the default stream */
  CHECK(aclrtSynchronizeStream(NULL));
  CHECK(aclrtMemcpy(y, sizeof y, y_device, sizeof y, ACL_MEMCPY_DEVICE_TO_HOST));
  for (int i = 0; i < 3; ++i) printf("%g %g\n", y[2 * i], y[2 * i + 1]);

  const int status =
      aclnnLeakyReluGetWorkspaceSize(self, negative_slope, wrong, &workspace_size, &executor);
  printf("refused with %d: %s", status, aclGetRecentErrMsg());

  aclDestroyTensor(self);
  aclDestroyTensor(out);
  aclDestroyTensor(wrong);
  aclDestroyScalar(negative_slope);
  CHECK(aclrtFree(x_device));
  CHECK(aclrtFree(y_device));
  CHECK(aclrtResetDevice(0));
  CHECK(aclFinalize());
  return 0;
}
