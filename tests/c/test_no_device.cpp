// SPDX-License-Identifier: Apache-2.0
// A program may ask for the device before it sets one, as torch_npu does. The error that it gets
// then must not come with a later failure.
#include <cstring>
#include <string>
#include <thread>

#include "acl/acl_rt.h"
#include "check.h"

static void primary_context() {
  int32_t active = 7;
  uint32_t flags = 7;
  CHECK_FAILS(aclrtGetPrimaryCtxState(0, &flags, nullptr), 100000, "active must not be NULL");
  CHECK_FAILS(aclrtGetPrimaryCtxState(1, &flags, &active), 107001, "deviceId must be in [0, 1)");
  CHECK_EQ(aclrtGetPrimaryCtxState(0, &flags, &active), 0);
  CHECK_EQ(active, 0);
  CHECK_EQ(flags, 0u);
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtGetPrimaryCtxState(0, nullptr, &active), 0);
  CHECK_EQ(active, 1);
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclrtGetPrimaryCtxState(0, nullptr, &active), 0);
  CHECK_EQ(active, 0);
}

static void forgotten_by_set_device() {
  int32_t id = 0;
  (void)aclGetRecentErrMsg();
  CHECK_EQ(aclrtGetDevice(&id), 107002);
  CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107002);
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
  CHECK_EQ(aclGetRecentErrMsg(), std::string());
}

// Other failures stay, in their order, also when more were recorded than are kept.
static void others_stay(int before) {
  int32_t id = 0;
  std::thread([&] {
    for (int i = 0; i < before; ++i) CHECK_EQ(aclrtSetDevice(100 + i), 107001);
    CHECK_EQ(aclrtGetDevice(&id), 107002);
    CHECK_EQ(aclrtSetDevice(200), 107001);
    CHECK_EQ(aclrtSetDevice(0), 0);
    CHECK_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 107001);
    const std::string text = aclGetRecentErrMsg();
    CHECK(text.find("call aclrtSetDevice first") == std::string::npos);
    CHECK(text.find("got 200") != std::string::npos);
    const bool kept = before > 0;
    const std::string last = "got " + std::to_string(99 + before);
    CHECK_EQ(text.find(last) != std::string::npos, kept);
    if (kept) CHECK(text.find("got 200") < text.find(last));
    CHECK_EQ(aclrtResetDevice(0), 0);
  }).join();
}

int main() {
  primary_context();
  forgotten_by_set_device();
  for (int before : {0, 1, 2, 3, 4, 9}) others_stay(before);
  return check_result();
}
