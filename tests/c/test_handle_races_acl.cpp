// SPDX-License-Identifier: Apache-2.0
// Races of handles: what stands beside streams and memory (core/acl): operators by type, models,
// channels, queues, profiling, allocators.
#include "acl/acl_mdl.h"
#include "acl/acl_op.h"
#include "acl/acl_prof.h"
#include "acl/acl_rt_allocator.h"
#include "acl/acl_tdt.h"
#include "acl/acl_tdt_queue.h"
#include "handle_races.h"

namespace {

float memory[64];  // of all buffers, for ever

Kind descriptions() {
  return {"tensor description",
          [] {
            const int64_t dims[] = {2, 3};
            return aclCreateTensorDesc(ACL_FLOAT, 2, dims, ACL_FORMAT_ND);
          },
          {[](void* a, void*) { return any(aclGetTensorDescSize(as<aclTensorDesc>(a))); },
           [](void* a, void*) { return any(aclGetTensorDescElementCount(as<aclTensorDesc>(a))); },
           [](void* a, void*) {
             static const std::vector<int64_t> dims(20, 2);
             return aclSetTensorShape(as<aclTensorDesc>(a), 20, dims.data());
           },
           [](void* a, void*) {
             aclSetTensorDescName(as<aclTensorDesc>(a), "a name that needs memory of the heap");
             return 0;
           },
           [](void* a, void* b) {
             static aclDataBuffer* from = aclCreateDataBuffer(memory, sizeof memory);
             static aclDataBuffer* to = aclCreateDataBuffer(memory + 32, sizeof memory / 2);
             aclTensorDesc *in[] = {as<aclTensorDesc>(a)}, *out[] = {as<aclTensorDesc>(b)};
             aclDataBuffer *source[] = {from}, *target[] = {to};
             return aclopExecuteV2("Identity", 1, in, source, 1, out, target, nullptr, nullptr);
           }},
          [](void* a) {
            aclDestroyTensorDesc(as<aclTensorDesc>(a));
            return 0;
          }};
}

Kind attributes() {
  return {"operator attributes",
          [] { return aclopCreateAttr(); },
          {[](void* a, void*) {
             return aclopSetAttrString(as<aclopAttr>(a), "name", "a text that needs the heap");
           },
           [](void* a, void*) {
             const int code = aclopExecuteV2("NoSuchType", 0, nullptr, nullptr, 0, nullptr, nullptr,
                                             as<aclopAttr>(a), nullptr);
             CHECK(code != 0);
             return code;
           }},
          [](void* a) {
            aclopDestroyAttr(as<aclopAttr>(a));
            return 0;
          }};
}

Kind model_datasets() {
  return {"dataset of a model",
          [] { return aclmdlCreateDataset(); },
          {[](void* a, void*) {
             static aclDataBuffer* buffer = aclCreateDataBuffer(memory, sizeof memory);
             return aclmdlAddDatasetBuffer(as<aclmdlDataset>(a), buffer);
           },
           [](void* a, void*) { return any(aclmdlGetDatasetBuffer(as<aclmdlDataset>(a), 0)); }},
          [](void* a) { return aclmdlDestroyDataset(as<aclmdlDataset>(a)); }};
}

Kind data_buffers() {
  return {"data buffer",
          [] { return aclCreateDataBuffer(memory, sizeof memory); },
          {[](void* a, void*) { return aclUpdateDataBuffer(as<aclDataBuffer>(a), memory, 4); },
           [](void* a, void*) { return any(aclGetDataBufferSizeV2(as<aclDataBuffer>(a))); }},
          [](void* a) { return aclDestroyDataBuffer(as<aclDataBuffer>(a)); }};
}

acltdtDataItem* make_item() {
  const int64_t dims[] = {4, 8};
  return acltdtCreateDataItem(ACL_TENSOR_DATA_TENSOR, dims, 2, ACL_FLOAT, memory, sizeof memory);
}

acltdtDataItem* sent_item = nullptr;

Kind items() {
  return {"data item",
          [] { return make_item(); },
          {[](void* a, void*) {
             int64_t dims[8];
             return acltdtGetDimsFromItem(as<acltdtDataItem>(a), dims, 8);
           },
           [](void* a, void* b) {
             acltdtDataset* set = acltdtCreateDataset();
             int code = acltdtAddDataItem(set, as<acltdtDataItem>(a));
             if (code == 0) code = acltdtAddDataItem(set, as<acltdtDataItem>(b));
             CHECK_EQ(acltdtDestroyDataset(set), 0);
             return code;
           }},
          [](void* a) { return acltdtDestroyDataItem(as<acltdtDataItem>(a)); }};
}

// Sent and received, so that datasets own items.
Kind datasets() {
  return {"dataset of a channel",
          [] { return acltdtCreateDataset(); },
          {[](void* a, void*) { return acltdtAddDataItem(as<acltdtDataset>(a), sent_item); },
           [](void* a, void* b) {
             static acltdtChannelHandle* channel = acltdtCreateChannel(0, "races");
             const int code = acltdtSendTensor(channel, as<acltdtDataset>(a), 0);
             return code != 0 ? code : acltdtReceiveTensor(channel, as<acltdtDataset>(b), 0);
           },
           [](void* a, void*) { return any(acltdtGetDataItem(as<acltdtDataset>(a), 0)); }},
          [](void* a) { return acltdtDestroyDataset(as<acltdtDataset>(a)); }};
}

Kind channels() {
  return {"channel",
          [] { return acltdtCreateChannel(0, "shared by handles"); },
          {[](void* a, void*) {
             static acltdtDataset* empty = acltdtCreateDataset();
             return acltdtSendTensor(as<acltdtChannelHandle>(a), empty, 0);
           },
           [](void* a, void*) { return acltdtCleanChannel(as<acltdtChannelHandle>(a)); },
           [](void* a, void*) {
             size_t size = 0;
             return acltdtQueryChannelSize(as<acltdtChannelHandle>(a), &size);
           }},
          [](void* a) { return acltdtDestroyChannel(as<acltdtChannelHandle>(a)); }};
}

Kind queue_attributes() {
  return {"queue attributes",
          [] { return acltdtCreateQueueAttr(); },
          {[](void* a, void*) {
             const char* name = "a name that needs memory of the heap";
             return acltdtSetQueueAttr(as<acltdtQueueAttr>(a), ACL_TDT_QUEUE_NAME_PTR, sizeof name,
                                       &name);
           },
           [](void* a, void*) {
             uint32_t queue = 0;
             const int code = acltdtCreateQueue(as<acltdtQueueAttr>(a), &queue);
             return code != 0 ? code : acltdtDestroyQueue(queue);
           }},
          [](void* a) { return acltdtDestroyQueueAttr(as<acltdtQueueAttr>(a)); }};
}

Kind routes() {
  return {"list of routes",
          [] { return acltdtCreateQueueRouteList(); },
          {[](void* a, void*) {
             static acltdtQueueRoute* route = acltdtCreateQueueRoute(1, 2);
             return acltdtAddQueueRoute(as<acltdtQueueRouteList>(a), route);
           },
           [](void* a, void*) {
             static acltdtQueueRouteQueryInfo* query = acltdtCreateQueueRouteQueryInfo();
             return acltdtQueryQueueRoutes(query, as<acltdtQueueRouteList>(a));
           },
           [](void* a, void*) { return any(acltdtGetQueueRouteNum(as<acltdtQueueRouteList>(a))); }},
          [](void* a) { return acltdtDestroyQueueRouteList(as<acltdtQueueRouteList>(a)); }};
}

Kind profiles() {
  return {"profiling configuration",
          [] {
            uint32_t device = 0;
            return aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, nullptr, ACL_PROF_ACL_API);
          },
          {[](void* a, void*) { return aclprofStart(as<aclprofConfig>(a)); },  // not initialised
           [](void* a, void*) { return aclprofStop(as<aclprofConfig>(a)); }},
          [](void* a) { return aclprofDestroyConfig(as<aclprofConfig>(a)); }};
}

Kind allocators() {
  return {"allocator",
          [] { return aclrtAllocatorCreateDesc(); },
          {[](void* a, void*) { return aclrtAllocatorSetObjToDesc(a, memory); },
           [](void* a, void*) { return aclrtAllocatorRegister(nullptr, a); }},
          [](void* a) { return aclrtAllocatorDestroyDesc(a); }};
}

}  // namespace

int main(int count, char** words) {
  const unsigned seed = seed_of(count, words);
  CHECK_EQ(aclrtSetDevice(0), 0);
  sent_item = make_item();
  for (const Kind& kind :
       {descriptions(), attributes(), model_datasets(), data_buffers(), items(), datasets(),
        channels(), queue_attributes(), routes(), profiles(), allocators()}) {
    race(kind, seed);
  }
  CHECK_EQ(acltdtDestroyDataItem(sent_item), 0);
  CHECK_EQ(aclrtResetDeviceForce(0), 0);
  return check_result();
}
