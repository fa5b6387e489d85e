// SPDX-License-Identifier: Apache-2.0
// Races of handles: objects of aclnn, and of the runtime.
#include "aclnn/aclnn_base.h"
#include "aclnn/openaclnn_read.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "handle_races.h"

namespace {

float memory[64];  // of all tensors, for ever
void* device_memory = nullptr;

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

Kind scalars() {
  return {"scalar",
          [] {
            float value = 0.5f;
            return aclCreateScalar(&value, ACL_FLOAT);
          },
          {[](void* a, void*) {
             double value = 0;
             const int code = openaclnnReadScalar(as<aclScalar>(a), &value);
             if (code == 0) CHECK_EQ(value, 0.5);
             return code;
           },
           [](void* a, void*) {
             static aclTensor* tensor = make_tensor();
             uint64_t size = 0;
             aclOpExecutor* executor = nullptr;
             const int code =
                 aclnnLeakyReluGetWorkspaceSize(tensor, as<aclScalar>(a), tensor, &size, &executor);
             return code != 0 ? code : aclnnLeakyRelu(nullptr, size, executor, nullptr);
           },
           [](void* a, void* b) {
             const aclScalar* both[] = {as<aclScalar>(a), as<aclScalar>(b)};
             aclScalarList* list = aclCreateScalarList(both, 2);
             return list == nullptr ? 1 : aclDestroyScalarList(list);  // with its scalars
           }},
          [](void* a) { return aclDestroyScalar(as<aclScalar>(a)); }};
}

Kind scalar_lists() {
  return {"scalar list",
          [] {
            int64_t value = 3;
            const aclScalar* own[] = {aclCreateScalar(&value, ACL_INT64)};
            return aclCreateScalarList(own, 1);
          },
          {[](void* a, void*) {
            uint64_t size = 0;
            return aclGetScalarListSize(as<aclScalarList>(a), &size);
          }},
          [](void* a) { return aclDestroyScalarList(as<aclScalarList>(a)); }};
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

}  // namespace

int main(int count, char** words) {
  const unsigned seed = seed_of(count, words);
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtMalloc(&device_memory, 64, ACL_MEM_MALLOC_NORMAL_ONLY), 0);
  for (const Kind& kind :
       {tensors(), scalars(), scalar_lists(), int_arrays(), tensor_lists(), events(), notifies(),
        graphs(), labels(), stream_configs(), physical_memory()}) {
    race(kind, seed);
  }
  CHECK_EQ(aclrtFree(device_memory), 0);
  CHECK_EQ(aclrtResetDeviceForce(0), 0);
  return check_result();
}
