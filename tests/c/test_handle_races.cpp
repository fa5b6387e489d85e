// SPDX-License-Identifier: Apache-2.0
// Threads use and destroy the same handles at once, of every kind of object. Each call does its
// work or returns an error with a sentence; none touches what another has freed. Runs under the
// address sanitizer too.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl_mdl.h"
#include "acl/acl_op.h"
#include "acl/acl_prof.h"
#include "acl/acl_rt_allocator.h"
#include "acl/acl_tdt.h"
#include "acl/acl_tdt_queue.h"
#include "aclnn/aclnn_base.h"
#include "aclnn/openaclnn_read.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kDuration = std::chrono::milliseconds(250);  // of each kind
constexpr int kThreads = 4;
constexpr size_t kShared = 4;  // handles that all threads use

float memory[64];  // of all tensors, for ever
void* device_memory = nullptr;
unsigned seed = std::random_device{}();

// A kind of object: its handles are made, used and destroyed in any order.
struct Kind {
  const char* name;
  std::function<void*()> make;
  std::vector<std::function<int(void*, void*)>> uses;  // of two handles of the kind
  std::function<int(void*)> end;
};

template <class T>
T* as(void* handle) {
  return static_cast<T*>(handle);
}

// A function without a status: any result will do.
template <class R>
int any(const R&) {
  return 0;
}

aclTensor* make_tensor() {
  const int64_t dims[] = {4, 8};
  return aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, memory);
}

int dims_of(const aclTensor* tensor) {
  int64_t* dims = nullptr;
  uint64_t count = 0;
  const int code = aclGetViewShape(tensor, &dims, &count);
  if (code == 0) CHECK_EQ(count, uint64_t{2});
  delete[] dims;
  return code;
}

Kind tensors() {
  return {"tensor",
          [] { return make_tensor(); },
          {[](void* a, void*) { return dims_of(as<aclTensor>(a)); },
           [](void* a, void*) {
             openaclnnTensorView view;
             return openaclnnReadTensor(as<aclTensor>(a), &view);
           },
           [](void* a, void* b) {
             const aclTensor* both[] = {as<aclTensor>(a), as<aclTensor>(b)};
             aclTensorList* list = aclCreateTensorList(both, 2);
             return list == nullptr ? 1 : aclDestroyTensorList(list);  // with its tensors
           },
           [](void* a, void* b) {
             static aclScalar* slope = [] {
               float value = 0.5f;
               return aclCreateScalar(&value, ACL_FLOAT);
             }();
             uint64_t size = 0;
             aclOpExecutor* executor = nullptr;
             const int code = aclnnLeakyReluGetWorkspaceSize(as<aclTensor>(a), slope,
                                                             as<aclTensor>(b), &size, &executor);
             return code != 0 ? code : aclnnLeakyRelu(nullptr, size, executor, nullptr);
           }},
          [](void* a) { return aclDestroyTensor(as<aclTensor>(a)); }};
}

Kind int_arrays() {
  return {"int array",
          [] {
            static const std::vector<int64_t> values(1000, 3);
            return aclCreateIntArray(values.data(), values.size());
          },
          {[](void* a, void*) {
            uint64_t size = 0;
            const int code = aclGetIntArraySize(as<aclIntArray>(a), &size);
            if (code == 0) CHECK_EQ(size, uint64_t{1000});
            return code;
          }},
          [](void* a) { return aclDestroyIntArray(as<aclIntArray>(a)); }};
}

Kind tensor_lists() {
  return {"tensor list",
          [] {
            const aclTensor* own[] = {make_tensor(), make_tensor()};
            return aclCreateTensorList(own, 2);
          },
          {[](void* a, void*) {
            uint64_t size = 0;
            return aclGetTensorListSize(as<aclTensorList>(a), &size);
          }},
          [](void* a) { return aclDestroyTensorList(as<aclTensorList>(a)); }};
}

Kind events() {
  return {"event",
          [] {
            aclrtEvent made = nullptr;
            CHECK_EQ(aclrtCreateEvent(&made), 0);
            return made;
          },
          {[](void* a, void*) { return aclrtRecordEvent(a, nullptr); },
           [](void* a, void*) { return aclrtStreamWaitEvent(nullptr, a); },
           [](void* a, void*) { return aclrtSynchronizeEvent(a); },
           [](void* a, void*) {
             aclrtEventRecordedStatus status;
             return aclrtQueryEventStatus(a, &status);
           },
           [](void* a, void* b) {
             float ms;
             return aclrtEventElapsedTime(&ms, a, b);
           }},
          [](void* a) { return aclrtDestroyEvent(a); }};
}

Kind notifies() {
  return {"notify",
          [] {
            aclrtNotify made = nullptr;
            CHECK_EQ(aclrtCreateNotify(&made, 0), 0);
            return made;
          },
          {[](void* a, void*) { return aclrtRecordNotify(a, nullptr); },
           [](void* a, void*) {
             uint32_t id;
             return aclrtGetNotifyId(a, &id);
           },
           [](void* a, void*) {
             char key[65];
             return aclrtNotifyGetExportKey(a, key, sizeof key, 0);
           },
           [](void* a, void* b) {
             aclrtNotify both[] = {a, b};
             return aclrtNotifyBatchReset(both, 2);
           }},
          [](void* a) { return aclrtDestroyNotify(a); }};
}

Kind graphs() {
  return {
      "graph",
      [] {
        aclrtStream stream = nullptr;
        aclmdlRI made = nullptr;
        CHECK_EQ(aclrtCreateStream(&stream), 0);
        CHECK_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_RELAXED), 0);
        CHECK_EQ(aclrtMemsetAsync(device_memory, 64, 0, 64, stream), 0);
        CHECK_EQ(aclmdlRICaptureEnd(stream, &made), 0);
        CHECK_EQ(aclrtDestroyStream(stream), 0);
        return made;
      },
      {[](void* a, void*) { return aclmdlRIExecuteAsync(a, nullptr); },
       [](void* a, void*) { return aclmdlRISetName(a, "a name that needs memory of the heap"); },
       [](void* a, void*) {
         char name[128];
         return aclmdlRIGetName(a, sizeof name, name);
       }},
      [](void* a) {
        int code = aclmdlRIDestroy(a);
        for (; code == ACL_ERROR_RT_MODEL_RUNNING; code = aclmdlRIDestroy(a))
          (void)aclrtSynchronizeStream(nullptr);
        return code;
      }};
}

Kind labels() {
  return {"label",
          [] {
            aclrtLabel made = nullptr;
            CHECK_EQ(aclrtCreateLabel(&made), 0);
            return made;
          },
          {[](void* a, void* b) {
            aclrtLabel both[] = {a, b};
            aclrtLabelList list = nullptr;
            const int code = aclrtCreateLabelList(both, 2, &list);
            return code != 0 ? code : aclrtDestroyLabelList(list);
          }},
          [](void* a) { return aclrtDestroyLabel(a); }};
}

Kind stream_configs() {
  return {"stream config",
          [] { return aclrtCreateStreamConfigHandle(); },
          {[](void* a, void*) {
             uint32_t priority = 1;
             return aclrtSetStreamConfigOpt(as<aclrtStreamConfigHandle>(a), ACL_RT_STREAM_PRIORITY,
                                            &priority, sizeof priority);
           },
           [](void* a, void*) {
             aclrtStream stream = nullptr;
             const int code = aclrtCreateStreamV2(&stream, as<aclrtStreamConfigHandle>(a));
             return code != 0 ? code : aclrtDestroyStream(stream);
           }},
          [](void* a) { return aclrtDestroyStreamConfigHandle(as<aclrtStreamConfigHandle>(a)); }};
}

Kind physical_memory() {
  return {"physical memory",
          [] {
            aclrtPhysicalMemProp prop = {};
            prop.memAttr = ACL_HBM_MEM_HUGE;
            prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
            aclrtDrvMemHandle made = nullptr;
            CHECK_EQ(aclrtMallocPhysical(&made, 2 << 20, &prop, 0), 0);
            return made;
          },
          {[](void* a, void*) {
            void* range = nullptr;
            CHECK_EQ(aclrtReserveMemAddress(&range, 2 << 20, 0, nullptr, 1), 0);
            const int code = aclrtMapMem(range, 2 << 20, 0, a, 0);
            if (code == 0) static_cast<char*>(range)[5] = 1;
            if (code == 0) CHECK_EQ(aclrtUnmapMem(range), 0);
            CHECK_EQ(aclrtReleaseMemAddress(range), 0);
            return code;
          }},
          [](void* a) { return aclrtFreePhysical(a); }};
}

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

// Any thread may end any handle; nobody takes it out of the list but who makes another.
void race(const Kind& kind) {
  std::atomic<void*> handles[kShared];
  for (auto& handle : handles) handle = kind.make();
  std::atomic<int> done{0}, silent{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      CHECK_EQ(aclrtSetDevice(0), 0);
      std::mt19937 random(seed + static_cast<unsigned>(i));
      const auto judge = [&](int code) {
        if (code == 0) ++done;
        const char* const sentence = aclGetRecentErrMsg();
        if (code != 0 && (sentence == nullptr || *sentence == '\0')) ++silent;
      };
      const auto until = Clock::now() + kDuration;
      while (Clock::now() < until) {
        auto& place = handles[random() % kShared];
        const unsigned what = random() % 10;
        if (what == 0) judge(kind.end(place));
        if (what == 1) judge(kind.end(place.exchange(kind.make())));
        if (what > 1)
          judge(kind.uses[random() % kind.uses.size()](place, handles[random() % kShared]));
      }
      CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& handle : handles) (void)kind.end(handle);
  (void)aclGetRecentErrMsg();
  CHECK(done > 0);
  CHECK_EQ(silent, 0);
  if (check_failures != 0) std::fprintf(stderr, "%s, seed %u\n", kind.name, seed);
}

}  // namespace

int main(int count, char** words) {
  if (count > 1) seed = static_cast<unsigned>(std::strtoul(words[1], nullptr, 10));
  std::printf("seed %u\n", seed);
  std::fflush(stdout);
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtMalloc(&device_memory, 64, ACL_MEM_MALLOC_NORMAL_ONLY), 0);
  sent_item = make_item();
  for (const Kind& kind :
       {tensors(),    int_arrays(),       tensor_lists(),   events(),          notifies(),
        graphs(),     labels(),           stream_configs(), physical_memory(), descriptions(),
        attributes(), model_datasets(),   data_buffers(),   items(),           datasets(),
        channels(),   queue_attributes(), routes(),         profiles(),        allocators()}) {
    race(kind);
  }
  CHECK_EQ(acltdtDestroyDataItem(sent_item), 0);
  CHECK_EQ(aclrtFree(device_memory), 0);
  CHECK_EQ(aclrtResetDeviceForce(0), 0);
  return check_result();
}
