// SPDX-License-Identifier: Apache-2.0
// Calls for a report of a run, of four processes: this one; a child that ends by _exit; one
// that a signal ends; and one that runs this program again by exec. The judgement of other products
// must leave no error behind.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "acl/acl.h"
#include "aclnnop/aclnn_leaky_relu.h"

static int call(aclDataType dtype, aclDataType out_dtype, int64_t out_size) {
  void *in = nullptr, *out = nullptr;
  aclrtMalloc(&in, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc(&out, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(in, 64, 0, 64);
  const int64_t size = 4, stride = 1;
  aclTensor* self = aclCreateTensor(&size, 1, dtype, &stride, 0, ACL_FORMAT_ND, &size, 1, in);
  aclTensor* result =
      aclCreateTensor(&out_size, 1, out_dtype, &stride, 0, ACL_FORMAT_ND, &out_size, 1, out);
  float slope = 0.5f;
  aclScalar* scalar = aclCreateScalar(&slope, ACL_FLOAT);
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  int status = aclnnLeakyReluGetWorkspaceSize(self, scalar, result, &workspace, &executor);
  if (status == 0) status = aclnnLeakyRelu(nullptr, workspace, executor, nullptr);
  aclrtSynchronizeDevice();
  aclDestroyTensor(self);
  aclDestroyTensor(result);
  aclDestroyScalar(scalar);
  aclrtFree(in);
  aclrtFree(out);
  return status;
}

int main(int count, char** arguments) {
  aclInit(nullptr);
  aclrtSetDevice(0);
  if (count > 1) return call(ACL_FLOAT, ACL_FLOAT, 4);
  const pid_t again = fork();
  if (again == 0) {
    aclrtSynchronizeDevice();  // the first call is written
    execl("/proc/self/exe", arguments[0], "again", nullptr);
    _exit(1);
  }
  int status = 1;
  waitpid(again, &status, 0);
  if (status != 0) return 5;
  for (const bool by_signal : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      if (call(ACL_FLOAT, ACL_FLOAT, 4) != 0) _exit(1);
      if (by_signal) raise(SIGKILL);
      _exit(0);
    }
    int ended = 0;
    waitpid(child, &ended, 0);
    if (by_signal ? !WIFSIGNALED(ended) : ended != 0) return 1;
  }
  if (call(ACL_FLOAT, ACL_FLOAT, 5) == 0) return 2;  // a wrong shape, on every product
  aclGetRecentErrMsg();
  for (int i = 0; i < 3; ++i) {
    if (call(ACL_FLOAT, ACL_FLOAT, 4) != 0) return 3;
  }
  if (call(ACL_BF16, ACL_BF16, 4) != 0) return 4;
  std::printf("left: %s|%d\n", aclGetRecentErrMsg(), aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL));
  aclFinalize();
  return 0;
}
