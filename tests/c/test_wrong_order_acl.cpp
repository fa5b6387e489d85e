// SPDX-License-Identifier: Apache-2.0
// Objects of the acl interface that end before what needs them: an error with a sentence.
#include "acl/acl_mdl.h"
#include "acl/acl_op.h"
#include "acl/acl_rt_allocator.h"
#include "acl/acl_tdt.h"
#include "acl/acl_tdt_queue.h"
#include "check.h"

namespace {

void channels_and_queues() {
  float values[4] = {};
  const int64_t dim = 4;
  acltdtDataItem* item =
      acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, &dim, 1, ACL_FLOAT, values, sizeof values);
  acltdtDataset* set = acltdtCreateDataset();
  acltdtChannelHandle* channel = acltdtCreateChannel(0, "wrong order");
  CHECK_EQ(acltdtAddDataItem(set, item), 0);
  CHECK_EQ(acltdtDestroyDataItem(item), 0);  // before its dataset
  CHECK_FAILS(acltdtSendTensor(channel, set, 0), 100000, "an item of dataset");
  CHECK_EQ(acltdtDestroyDataset(set), 0);
  CHECK_FAILS(acltdtDestroyDataset(set), 100000, "dataset");
  acltdtDataset* received = acltdtCreateDataset();
  CHECK_EQ(acltdtDestroyChannel(channel), 0);
  CHECK_FAILS(acltdtReceiveTensor(channel, received, 0), 100000, "handle");
  CHECK_EQ(acltdtDestroyDataset(received), 0);
  uint32_t from = 0, to = 0;
  CHECK_EQ(acltdtCreateQueue(nullptr, &from), 0);
  CHECK_EQ(acltdtCreateQueue(nullptr, &to), 0);
  acltdtQueueRoute* route = acltdtCreateQueueRoute(from, to);
  acltdtQueueRouteList* list = acltdtCreateQueueRouteList();
  CHECK_EQ(acltdtAddQueueRoute(list, route), 0);
  CHECK_EQ(acltdtDestroyQueueRoute(route), 0);
  CHECK_EQ(acltdtBindQueueRoutes(list), 0);
  CHECK_EQ(acltdtDestroyQueue(to), 0);  // before its route
  CHECK_EQ(acltdtEnqueueData(from, values, sizeof values, nullptr, 0, 0, 0), 0);
  CHECK_EQ(acltdtUnbindQueueRoutes(list), 0);
  CHECK_FAILS(acltdtBindQueueRoutes(list), 107000, "a destination");
  CHECK_EQ(acltdtDestroyQueueRouteList(list), 0);
  CHECK_EQ(acltdtDestroyQueue(from), 0);
}

void operators_by_type() {
  float values[8] = {};
  const int64_t dim = 8;
  aclTensorDesc* description = aclCreateTensorDesc(ACL_FLOAT, 1, &dim, ACL_FORMAT_ND);
  aclDataBuffer* buffer = aclCreateDataBuffer(values, sizeof values);
  aclmdlDataset* set = aclmdlCreateDataset();
  CHECK_EQ(aclmdlAddDatasetBuffer(set, buffer), 0);
  CHECK_EQ(aclDestroyDataBuffer(buffer), 0);  // before its dataset
  aclDataBuffer* const found = aclmdlGetDatasetBuffer(set, 0);
  CHECK(aclGetDataBufferAddr(found) == nullptr);
  CHECK_FAILS(aclopExecuteV2("Identity", 1, &description, &buffer, 1, &description, &buffer,
                             nullptr, nullptr),
              100000, "was destroyed or never created");
  CHECK_EQ(aclmdlDestroyDataset(set), 0);
  aclDestroyTensorDesc(description);
  CHECK_EQ(aclGetTensorDescSize(description), size_t{0});
  (void)aclGetRecentErrMsg();
}

void labels_and_allocators() {
  aclrtLabel label = nullptr;
  aclrtLabelList list = nullptr;
  CHECK_EQ(aclrtCreateLabel(&label), 0);
  CHECK_EQ(aclrtCreateLabelList(&label, 1, &list), 0);
  CHECK_EQ(aclrtDestroyLabel(label), 0);
  uint32_t index = 0;
  CHECK(aclrtSwitchLabelByIndex(&index, 1, list, nullptr) != 0);
  CHECK_EQ(aclrtDestroyLabelList(list), 0);
  aclrtStream stream = nullptr;
  CHECK_EQ(aclrtCreateStream(&stream), 0);
  aclrtAllocatorDesc allocator = aclrtAllocatorCreateDesc();
  CHECK_EQ(aclrtDestroyStream(stream), 0);
  CHECK(aclrtAllocatorRegister(stream, allocator) != 0);
  CHECK_EQ(aclrtAllocatorDestroyDesc(allocator), 0);
  CHECK(aclrtAllocatorSetObjToDesc(allocator, &index) != 0);
  (void)aclGetRecentErrMsg();
}

}  // namespace

int main() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  channels_and_queues();
  operators_by_type();
  labels_and_allocators();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}
