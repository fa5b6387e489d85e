// SPDX-License-Identifier: Apache-2.0
// Channels of tensors, queues of bytes, routes between queues.
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "acl/acl_tdt.h"
#include "acl/acl_tdt_queue.h"
#include "check.h"

namespace {

void items() {
  const int64_t dims[] = {2, 3};
  float data[6] = {1, 2, 3, 4, 5, 6};
  acltdtDataItem* item =
      acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 2, ACL_FLOAT, data, sizeof data);
  CHECK(item != nullptr);
  CHECK_EQ(acltdtGetTensorTypeFromItem(item), ACL_TENSOR_DATA_TENSOR);
  CHECK_EQ(acltdtGetDataTypeFromItem(item), ACL_FLOAT);
  CHECK_EQ(acltdtGetDataAddrFromItem(item), data);
  CHECK_EQ(acltdtGetDataSizeFromItem(item), sizeof data);
  CHECK_EQ(acltdtGetDimNumFromItem(item), size_t{2});
  int64_t got[3] = {};
  CHECK_EQ(acltdtGetDimsFromItem(item, got, 3), 0);
  CHECK(got[0] == 2 && got[1] == 3);
  CHECK_EQ(acltdtGetDimsFromItem(item, got, 1), 100000);
  CHECK_EQ(acltdtGetDimsFromItem(item, nullptr, 2), 100000);
  size_t slices = 9, slice = 9;
  CHECK_EQ(acltdtGetSliceInfoFromItem(item, &slices, &slice), 0);
  CHECK(slices == 0 && slice == 0);
  CHECK_EQ(acltdtGetSliceInfoFromItem(item, nullptr, &slice), 100000);
  CHECK(acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, nullptr, 2, ACL_FLOAT, data, 4) == nullptr);
  CHECK_TEXT("dims NULL for 0 alone");
  CHECK(acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 0, ACL_FLOAT, data, 4) == nullptr);
  CHECK(acltdtCreateDataItem(static_cast<acltdtTensorType>(9), dims, 2, ACL_FLOAT, data, 4) ==
        nullptr);
  acltdtDataset* dataset = acltdtCreateDataset();
  CHECK_EQ(acltdtAddDataItem(dataset, item), 0);
  CHECK_EQ(acltdtAddDataItem(nullptr, item), 100000);
  CHECK_EQ(acltdtAddDataItem(dataset, nullptr), 100000);
  CHECK_EQ(acltdtGetDatasetSize(dataset), size_t{1});
  CHECK_EQ(acltdtGetDatasetSize(nullptr), size_t{0});
  CHECK_EQ(acltdtGetDataItem(dataset, 0), item);
  CHECK(acltdtGetDataItem(dataset, 1) == nullptr);
  CHECK_EQ(std::string(acltdtGetDatasetName(dataset)), "");
  CHECK(acltdtGetDatasetName(nullptr) == nullptr);
  CHECK_EQ(acltdtDestroyDataset(dataset), 0);
  CHECK_EQ(acltdtDestroyDataset(dataset), 100000);
  CHECK_EQ(acltdtDestroyDataItem(item), 0);
  CHECK_FAILS(acltdtDestroyDataItem(item), 100000, "dataItem 0x");
  CHECK(acltdtGetDataAddrFromItem(item) == nullptr);
  CHECK_EQ(acltdtGetDataTypeFromItem(nullptr), ACL_DT_UNDEFINED);
  CHECK_EQ(acltdtDestroyDataItem(nullptr), 100000);
}

acltdtDataset* dataset_of(float value, acltdtDataItem** item) {
  static float data[4];
  data[0] = value;
  const int64_t dims[] = {4};
  *item = acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 1, ACL_FLOAT, data, sizeof data);
  acltdtDataset* made = acltdtCreateDataset();
  CHECK_EQ(acltdtAddDataItem(made, *item), 0);
  return made;
}

void channels() {
  acltdtChannelHandle* channel = acltdtCreateChannelWithCapacity(0, "channel", 2);
  acltdtChannelHandle* same = acltdtCreateChannelWithCapacity(0, "channel", 2);
  CHECK(channel != nullptr && same != nullptr && channel != same);
  acltdtDataItem* item = nullptr;
  acltdtDataset* sent = dataset_of(7, &item);
  CHECK_EQ(acltdtSendTensor(channel, sent, 0), 0);
  static_cast<float*>(acltdtGetDataAddrFromItem(item))[0] = 8;  // the channel has a copy
  CHECK_EQ(acltdtSendTensor(channel, sent, -1), 0);
  CHECK_FAILS(acltdtSendTensor(channel, sent, 0), 207014, "the channel is full");
  CHECK_EQ(acltdtSendTensor(channel, sent, 20), 207014);
  size_t size = 0;
  CHECK_EQ(acltdtQueryChannelSize(same, &size), 0);
  CHECK_EQ(size, size_t{2});
  acltdtDataset* received = acltdtCreateDataset();
  CHECK_EQ(acltdtReceiveTensor(same, received, 0), 0);
  acltdtDataItem* got = acltdtGetDataItem(received, 0);
  CHECK_EQ(static_cast<float*>(acltdtGetDataAddrFromItem(got))[0], 7.0f);
  CHECK_EQ(acltdtGetDimNumFromItem(got), size_t{1});
  CHECK_FAILS(acltdtAddDataItem(received, item), 200006, "takes no more items");
  CHECK_FAILS(acltdtDestroyDataItem(got), 100000, "it ends with its dataset");
  CHECK_FAILS(acltdtReceiveTensor(channel, received, 0), 100000, "dataset must be empty");
  CHECK_EQ(acltdtDestroyDataset(received), 0);
  CHECK(acltdtGetDataAddrFromItem(got) == nullptr);
  CHECK_EQ(acltdtCleanChannel(channel), 0);
  received = acltdtCreateDataset();
  CHECK_FAILS(acltdtReceiveTensor(channel, received, 0), 207013, "the channel is empty");
  CHECK_EQ(acltdtReceiveTensor(channel, received, 20), 207013);
  std::thread sender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK_EQ(acltdtSendTensor(channel, sent, -1), 0);
  });
  CHECK_EQ(acltdtReceiveTensor(same, received, -1), 0);
  sender.join();
  CHECK_EQ(acltdtGetDatasetSize(received), size_t{1});
  CHECK_EQ(acltdtDestroyDataset(received), 0);
  received = acltdtCreateDataset();
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    CHECK_EQ(acltdtStopChannel(channel), 0);
  });
  CHECK_FAILS(acltdtReceiveTensor(same, received, -1), 500001, "was stopped");
  stopper.join();
  CHECK_EQ(acltdtSendTensor(same, sent, 0), 500001);
  CHECK_EQ(acltdtSendTensor(nullptr, sent, 0), 100000);
  CHECK_EQ(acltdtSendTensor(channel, nullptr, 0), 100000);
  CHECK_FAILS(acltdtSendTensor(channel, sent, -2), 100000, "timeout must be -1");
  CHECK_EQ(acltdtReceiveTensor(channel, nullptr, 0), 100000);
  CHECK_EQ(acltdtQueryChannelSize(channel, nullptr), 100000);
  CHECK_EQ(acltdtCleanChannel(nullptr), 100000);
  CHECK_EQ(acltdtStopChannel(nullptr), 100000);
  CHECK_EQ(acltdtDestroyChannel(channel), 0);
  CHECK_EQ(acltdtDestroyChannel(channel), 100000);
  CHECK_EQ(acltdtSendTensor(channel, sent, 0), 100000);
  CHECK_EQ(acltdtDestroyChannel(same), 0);
  channel = acltdtCreateChannel(0, "channel");  // a new one
  CHECK_EQ(acltdtQueryChannelSize(channel, &size), 0);
  CHECK_EQ(size, size_t{0});
  CHECK_EQ(acltdtDestroyChannel(channel), 0);
  CHECK(acltdtCreateChannelWithCapacity(0, "c", 1) == nullptr);
  CHECK_TEXT("capacity must be in [2, 8192], but got 1");
  CHECK(acltdtCreateChannelWithCapacity(9, "c", 2) == nullptr);
  CHECK(acltdtCreateChannelWithCapacity(0, nullptr, 2) == nullptr);
  CHECK_EQ(acltdtDestroyDataset(received), 0);
  CHECK_EQ(acltdtDestroyDataset(sent), 0);
  CHECK_EQ(acltdtDestroyDataItem(item), 0);
}

void queues() {
  acltdtQueueAttr* attributes = acltdtCreateQueueAttr();
  const char* name = "queue";
  uint32_t depth = 1, qid = 99, other = 99;
  size_t size = 0;
  CHECK_EQ(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, sizeof name, &name), 0);
  CHECK_EQ(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, sizeof depth, &depth), 0);
  const char* back = nullptr;
  CHECK_EQ(acltdtGetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, sizeof back, &size, &back), 0);
  CHECK_EQ(std::string(back), "queue");
  depth = 0;
  CHECK_EQ(acltdtGetQueueAttr(attributes, ACL_TDT_QUEUE_DEPTH_UINT32, 4, &size, &depth), 0);
  CHECK(depth == 1 && size == 4);
  const std::string long_name(128, 'x');
  const char* too_long = long_name.c_str();
  CHECK_EQ(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, 8, &too_long), 100000);
  CHECK_EQ(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, 4, &name), 100000);
  CHECK_EQ(acltdtSetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, 8, nullptr), 100000);
  CHECK_EQ(acltdtSetQueueAttr(nullptr, ACL_TDT_QUEUE_NAME_PTR, 8, &name), 100000);
  CHECK_EQ(acltdtSetQueueAttr(attributes, static_cast<acltdtQueueAttrType>(2), 8, &name), 100000);
  CHECK_EQ(acltdtGetQueueAttr(attributes, static_cast<acltdtQueueAttrType>(2), 8, &size, &back),
           100000);
  CHECK_EQ(acltdtGetQueueAttr(attributes, ACL_TDT_QUEUE_NAME_PTR, 8, nullptr, &back), 100000);
  CHECK_EQ(acltdtCreateQueue(attributes, &qid), 0);
  CHECK_FAILS(acltdtCreateQueue(attributes, &other), 100000, "already a queue of the name");
  CHECK_EQ(acltdtCreateQueue(nullptr, &other), 0);
  CHECK_EQ(acltdtCreateQueue(nullptr, nullptr), 100000);
  CHECK_EQ(acltdtDestroyQueueAttr(attributes), 0);
  CHECK_EQ(acltdtDestroyQueueAttr(attributes), 100000);
  CHECK_EQ(acltdtCreateQueue(attributes, &depth), 100000);

  char data[8] = "abcdefg", extra[4] = "xyz", got[8] = {}, more[4] = {};
  CHECK_EQ(acltdtEnqueueData(qid, data, 8, extra, 4, 0, 0), 0);
  CHECK_FAILS(acltdtEnqueueData(qid, data, 8, nullptr, 0, 20, 0), 207014, "the queue is full");
  CHECK_FAILS(acltdtDequeueData(qid, got, 4, &size, more, 4, 0), 100000, "must be at least 8");
  CHECK_EQ(acltdtDequeueData(qid, got, 8, &size, more, 4, 0), 0);
  CHECK(size == 8 && std::string(got) == "abcdefg" && std::string(more) == "xyz");
  CHECK_FAILS(acltdtDequeueData(qid, got, 8, &size, nullptr, 0, 0), 207013, "the queue is empty");
  CHECK_EQ(acltdtEnqueueData(qid, nullptr, 8, nullptr, 0, 0, 0), 100000);
  CHECK_EQ(acltdtEnqueueData(qid, data, 0, nullptr, 0, 0, 0), 100000);
  CHECK_EQ(acltdtEnqueueData(qid, data, 8, extra, 97, 0, 0), 100000);
  CHECK_EQ(acltdtEnqueueData(1234, data, 8, nullptr, 0, 0, 0), 107000);
  CHECK_EQ(acltdtDequeueData(qid, got, 8, nullptr, nullptr, 0, 0), 100000);

  // A route, and the circle that it must not close.
  acltdtQueueRoute* route = acltdtCreateQueueRoute(qid, other);
  acltdtQueueRoute* reverse = acltdtCreateQueueRoute(other, qid);
  acltdtQueueRouteList *list = acltdtCreateQueueRouteList(), *found = acltdtCreateQueueRouteList(),
                       *circle = acltdtCreateQueueRouteList();
  CHECK_EQ(acltdtAddQueueRoute(list, route), 0);
  CHECK_EQ(acltdtAddQueueRoute(circle, reverse), 0);
  CHECK_EQ(acltdtGetQueueRouteNum(list), size_t{1});
  CHECK_EQ(acltdtBindQueueRoutes(list), 0);
  CHECK_FAILS(acltdtBindQueueRoutes(circle), 100000, "would close a circle");
  CHECK_EQ(acltdtGetQueueRoute(list, 0, route), 0);
  int32_t status = 9;
  CHECK_EQ(acltdtGetQueueRouteParam(route, ACL_TDT_QUEUE_ROUTE_STATUS_INT32, 4, &size, &status), 0);
  CHECK_EQ(status, ACL_TDT_QUEUE_ROUTE_BIND);
  CHECK_EQ(acltdtEnqueueData(qid, data, 8, nullptr, 0, 0, 0), 0);
  std::memset(got, 0, sizeof got);
  CHECK_EQ(acltdtDequeueData(other, got, 8, &size, nullptr, 0, 5000), 0);
  CHECK_EQ(std::string(got), "abcdefg");
  acltdtQueueRouteQueryInfo* query = acltdtCreateQueueRouteQueryInfo();
  const uint32_t mode = ACL_TDT_QUEUE_ROUTE_QUERY_SRC;
  CHECK_EQ(acltdtSetQueueRouteQueryInfo(query, ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM, 4, &mode), 0);
  CHECK_EQ(acltdtSetQueueRouteQueryInfo(query, ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32, 4, &qid),
           0);
  CHECK_EQ(acltdtQueryQueueRoutes(query, found), 0);
  CHECK_EQ(acltdtGetQueueRouteNum(found), size_t{1});
  CHECK_EQ(acltdtUnbindQueueRoutes(list), 0);
  CHECK_EQ(acltdtQueryQueueRoutes(query, found), 0);
  CHECK_EQ(acltdtGetQueueRouteNum(found), size_t{0});
  CHECK_EQ(acltdtGetQueueRoute(found, 0, route), 100000);
  CHECK_EQ(acltdtSetQueueRouteQueryInfo(query, ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM, 8, &mode),
           100000);
  CHECK_EQ(
      acltdtGetQueueRouteParam(route, static_cast<acltdtQueueRouteParamType>(3), 4, &size, &status),
      100000);
  CHECK_EQ(acltdtBindQueueRoutes(nullptr), 100000);
  CHECK_EQ(acltdtQueryQueueRoutes(nullptr, found), 100000);
  CHECK_EQ(acltdtDestroyQueueRouteQueryInfo(query), 0);
  CHECK_EQ(acltdtDestroyQueueRouteQueryInfo(query), 100000);
  CHECK_EQ(acltdtBindQueueRoutes(list), 0);
  CHECK_EQ(acltdtDestroyQueue(other), 0);  // ends the route
  CHECK_FAILS(acltdtBindQueueRoutes(list), 107000, "a destination");
  for (auto* own : {list, found, circle}) CHECK_EQ(acltdtDestroyQueueRouteList(own), 0);
  CHECK_EQ(acltdtDestroyQueueRouteList(list), 100000);
  CHECK_EQ(acltdtGetQueueRouteNum(list), size_t{0});
  CHECK_EQ(acltdtDestroyQueueRoute(route), 0);
  CHECK_EQ(acltdtDestroyQueueRoute(route), 100000);
  CHECK_EQ(acltdtDestroyQueueRoute(reverse), 0);
  CHECK_EQ(acltdtDestroyQueue(qid), 0);
  CHECK_EQ(acltdtDestroyQueue(qid), 107000);
}

}  // namespace

int main() {
  items();
  channels();
  queues();
  return check_result();
}
