/* SPDX-License-Identifier: Apache-2.0
 * Phase 2 of an operator that ATen computes, where it must not wait for the stream: prints "good",
 * or what was wrong. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"

static int wrong = 0;
static float x[4] = {0, 1, 2, 3}, y[4];
static aclTensor *in, *out;
static aclScalar* alpha;
static aclrtStream stream;

static void check(int right, const char* what) {
  if (right) return;
  printf("not so: %s; %s\n", what, aclGetRecentErrMsg());
  wrong = 1;
}
#define CHECK(what) check(what, #what)

static aclOpExecutor* plan(void) {
  uint64_t size;
  aclOpExecutor* executor = NULL;
  CHECK(aclnnAddGetWorkspaceSize(in, in, alpha, out, &size, &executor) == 0);
  return executor;
}

static void nothing(void* data) { (void)data; }

/* The callback that the stream waits for is due on the thread that calls phase 2. */
static void a_callback_is_due(void) {
  y[3] = 0;
  CHECK(aclrtSubscribeReport((uint64_t)pthread_self(), stream) == 0);
  CHECK(aclrtLaunchCallback(nothing, NULL, ACL_CALLBACK_BLOCK, stream) == 0);
  CHECK(aclnnAdd(NULL, 0, plan(), stream) == 0);
  CHECK(aclrtProcessReport(-1) == 0);
  CHECK(aclrtSynchronizeStream(stream) == 0);
  CHECK(aclrtUnSubscribeReport((uint64_t)pthread_self(), stream) == 0);
  CHECK(y[3] == 9);
}

static void call(void* executor) {
  CHECK(aclrtSetDevice(0) == 0);
  CHECK(aclnnAdd(NULL, 0, executor, stream) == 0);
  CHECK(aclrtGetLastError(ACL_RT_THREAD_LEVEL) == 0);
  CHECK(aclGetRecentErrMsg()[0] == '\0');
}

/* Phase 2 inside a callback on its own stream. */
static void inside_a_callback(void) {
  y[3] = 0;
  CHECK(aclrtSubscribeReport((uint64_t)pthread_self(), stream) == 0);
  CHECK(aclrtLaunchCallback(call, plan(), ACL_CALLBACK_BLOCK, stream) == 0);
  CHECK(aclrtProcessReport(-1) == 0);
  CHECK(aclrtSynchronizeStream(stream) == 0);
  CHECK(aclrtUnSubscribeReport((uint64_t)pthread_self(), stream) == 0);
  CHECK(y[3] == 9);
}

static atomic_int refused = 0;
static _Atomic uint64_t reporter = 0;

static void hold(void* data) {
  (void)data;
  while (!refused) usleep(100);
}

static void* report(void* data) {
  reporter = (uint64_t)pthread_self();
  while (aclrtProcessReport(1000) != 0) usleep(100);
  return data;
}

/* What is wrong with the arguments is said although the stream is busy, and nothing else is. */
static void refusals(void) {
  pthread_t thread;
  aclrtStream gone;
  aclOpExecutor* executor = plan();
  const char* text;
  CHECK(aclnnAdd(NULL, 0, executor, stream) == 0);
  CHECK(aclrtSynchronizeStream(stream) == 0);
  pthread_create(&thread, NULL, report, NULL);
  while (reporter == 0) usleep(100);
  CHECK(aclrtSubscribeReport(reporter, stream) == 0);
  CHECK(aclrtLaunchCallback(hold, NULL, ACL_CALLBACK_BLOCK, stream) == 0);
  CHECK(aclnnAdd(NULL, 0, executor, stream) == 161002);
  CHECK(strstr(aclGetRecentErrMsg(), "already run") != NULL);
  refused = 1;
  CHECK(aclrtSynchronizeStream(stream) == 0);
  CHECK(aclrtUnSubscribeReport(reporter, stream) == 0);
  pthread_join(thread, NULL);

  CHECK(aclrtCreateStream(&gone) == 0 && aclrtDestroyStream(gone) == 0);
  CHECK(aclnnAdd(NULL, 0, plan(), gone) != 0);
  text = aclGetRecentErrMsg();
  CHECK(strstr(text, "aclnnAdd: stream 0x") != NULL);
  CHECK(strstr(text, "wait_for_stream") == NULL && strchr(text, '\n')[1] == '\0');
}

/* All calls that set addresses say the same. */
static void addresses(void) {
  aclOpExecutor* executor = plan();
  const aclTensor* const tensors[] = {in};
  aclTensorList* list = aclCreateTensorList(tensors, 1);
  CHECK(aclSetInputTensorAddr(executor, 0, in, x) == 561000);
  CHECK(aclSetDynamicInputTensorAddr(executor, 0, 0, list, x) == 561000);
  CHECK(strstr(aclGetRecentErrMsg(),
               "aclSetDynamicInputTensorAddr: the addresses of an operator") != NULL);
  CHECK(aclSetDynamicTensorAddr(executor, 0, 0, list, x) == 561000);
  CHECK(aclDestroyAclOpExecutor(executor) == 0);
}

int main(void) {
  const int64_t shape[] = {4};
  float factor = 2;
  alarm(60); /* a deadlock ends the program */
  CHECK(aclInit(NULL) == 0 && aclrtSetDevice(0) == 0);
  CHECK(aclrtCreateStream(&stream) == 0);
  in = aclCreateTensor(shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, shape, 1, x);
  out = aclCreateTensor(shape, 1, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, shape, 1, y);
  alpha = aclCreateScalar(&factor, ACL_FLOAT);
  inside_a_callback();
  refusals();
  addresses();
  a_callback_is_due();
  if (!wrong) printf("good\n");
  return wrong;
}
