// SPDX-License-Identifier: Apache-2.0
// The rest of the runtime: a table of functions whose arguments are drawn by their types, live
// objects of every kind among them. Functions that wait, or that change what other actions rely
// on, are not in it.
#include <algorithm>
#include <climits>
#include <cstring>
#include <limits>
#include <type_traits>

#include "acl/acl_dump.h"
#include "acl/acl_prof.h"
#include "acl/acl_rt_allocator.h"
#include "acl/acl_tdt.h"
#include "acl/acl_tdt_queue.h"
#include "world.h"

namespace fuzz {
namespace {

alignas(64) char scratch[1 << 16];  // zeros before each call: what it points to is NULL

// Objects that only these actions have.
struct Objects {
  std::vector<void*> all;
  void add(const void* made) {
    if (made != nullptr) all.push_back(const_cast<void*>(made));
  }
};

template <class T>
concept Complete = requires { sizeof(T); };

void* any_handle(World& w, const Objects& own) {
  const uint64_t kind = w.random.below(10);
  if (kind < 6 && !own.all.empty()) return w.random.pick(own.all);
  const Pool& pool = w.any_pool();
  if (kind < 8) return pool.live.empty() ? nullptr : w.random.pick(pool.live);
  return kind == 8 ? garbage(w.random) : nullptr;
}

// `data`: void* is memory, not a handle.
template <class T>
T draw(World& w, const Objects& own, bool data) {
  Random& random = w.random;
  if constexpr (std::is_enum_v<T>) {
    static constexpr int values[] = {0, 1, 2, 3, 4, 99, -1, INT_MAX};
    return static_cast<T>(random.pick(values));
  } else if constexpr (std::is_same_v<T, size_t>) {
    return random.chance(90) ? random.below(9) : 64;  // perhaps the size of scratch memory
  } else if constexpr (std::is_integral_v<T>) {
    if (random.chance(70)) return static_cast<T>(random.below(4));
    return random.chance(50) ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(random.uniform(-2, 2));
  } else if constexpr (!std::is_pointer_v<T>) {
    return T{};
  } else {
    using To = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_function_v<To>) {
      return nullptr;
    } else if constexpr (std::is_void_v<To> || !Complete<To>) {
      if (random.chance(20)) return nullptr;
      if (data && std::is_void_v<To>) return reinterpret_cast<T>(scratch);
      if (random.chance(5)) return reinterpret_cast<T>(scratch);
      return static_cast<T>(any_handle(w, own));
    } else if constexpr (std::is_same_v<T, const char*>) {
      static constexpr const char* names[] = {nullptr, "", "x", "no such name"};
      return random.pick(names);
    } else {
      return random.chance(20) ? nullptr : reinterpret_cast<T>(scratch);
    }
  }
}

struct Function {
  void (*call)(World& w, const Objects& own);
};

template <bool data, class R, class... A>
void make_call(const char* name, R (*function)(A...), World& w, const Objects& own) {
  std::memset(scratch, 0, sizeof scratch);
  ++run.calls;
  run.last = name;
  if constexpr (std::is_same_v<R, aclError>) {
    judge(name, function(draw<A>(w, own, data)...), Must::either);
  } else {
    function(draw<A>(w, own, data)...);
  }
}

#define HANDLES(f) {[](World& w, const Objects& own) { make_call<false>(#f, f, w, own); }}
#define DATA(f) {[](World& w, const Objects& own) { make_call<true>(#f, f, w, own); }}

constexpr Function kFunctions[] = {
    // objects of the other headers; void* is a handle with HANDLES, memory with DATA
    HANDLES(aclGetDataBufferAddr),
    HANDLES(aclGetDataBufferSizeV2),
    HANDLES(aclUpdateDataBuffer),
    HANDLES(aclGetTensorDescType),
    HANDLES(aclGetTensorDescFormat),
    HANDLES(aclGetTensorDescSize),
    HANDLES(aclGetTensorDescElementCount),
    HANDLES(aclGetTensorDescNumDims),
    HANDLES(aclGetTensorDescDimV2),
    HANDLES(aclSetTensorFormat),
    HANDLES(aclSetTensorPlaceMent),
    HANDLES(aclmdlGetDatasetNumBuffers),
    HANDLES(aclmdlGetDatasetBuffer),
    HANDLES(aclmdlGetNumInputs),
    HANDLES(aclmdlGetInputSizeByIndex),
    HANDLES(aclmdlGetInputDims),
    HANDLES(aclopSetAttrBool),
    HANDLES(aclopSetAttrInt),
    HANDLES(aclopSetAttrFloat),
    HANDLES(aclopSetAttrString),
    HANDLES(aclprofMark),
    HANDLES(aclprofPush),
    HANDLES(aclprofPop),
    HANDLES(aclprofRangeStop),
    // queues and channels
    HANDLES(acltdtQueryChannelSize),
    HANDLES(acltdtCleanChannel),
    HANDLES(acltdtStopChannel),
    HANDLES(acltdtGetDataItem),
    HANDLES(acltdtGetDatasetSize),
    HANDLES(acltdtGetDatasetName),
    HANDLES(acltdtGetDataAddrFromItem),
    HANDLES(acltdtGetDataSizeFromItem),
    HANDLES(acltdtGetDataTypeFromItem),
    HANDLES(acltdtGetTensorTypeFromItem),
    HANDLES(acltdtGetDimNumFromItem),
    HANDLES(acltdtGetDimsFromItem),
    HANDLES(acltdtGetSliceInfoFromItem),
    HANDLES(acltdtDestroyQueue),
    DATA(acltdtGetQueueAttr),
    HANDLES(acltdtGetQueueRouteNum),
    HANDLES(acltdtBindQueueRoutes),
    HANDLES(acltdtQueryQueueRoutes),
    // notifications, values, IPC, registration
    HANDLES(aclrtGetNotifyId),
    HANDLES(aclrtRecordNotify),
    HANDLES(aclrtNotifyBatchReset),
    HANDLES(aclrtNotifyGetExportKey),
    HANDLES(aclrtNotifyImportByKey),
    HANDLES(aclrtNotifySetImportPid),
    HANDLES(aclrtIpcMemClose),
    HANDLES(aclrtIpcMemImportByKey),
    HANDLES(aclrtIpcMemSetImportPid),
    HANDLES(aclrtHostUnregister),
    HANDLES(aclrtHostGetDevicePointer),
    HANDLES(aclrtAllocatorGetByStream),
    HANDLES(aclrtAllocatorUnregister),
    HANDLES(aclrtAllocatorRegister),
    // copies, reduction, random numbers
    DATA(aclrtMemcpy2d),
    DATA(aclrtMemcpy2dAsync),
    DATA(aclrtMemcpyBatch),
    DATA(aclrtReduceAsync),
    DATA(aclrtRandomNumAsync),
    DATA(aclrtCmoAsync),
    DATA(aclrtValueWrite),
    // streams, devices, callbacks, overflow
    HANDLES(aclrtStreamGetId),
    HANDLES(aclrtStreamGetFlags),
    HANDLES(aclrtStreamGetPriority),
    HANDLES(aclrtGetStreamAttribute),
    HANDLES(aclrtGetStreamOverflowSwitch),
    HANDLES(aclrtSetStreamOverflowSwitch),
    DATA(aclrtGetOverflowStatus),
    HANDLES(aclrtResetOverflowStatus),
    DATA(aclrtSetStreamConfigOpt),
    HANDLES(aclrtLaunchHostFunc),
    HANDLES(aclrtProcessHostFunc),
    HANDLES(aclrtSubscribeHostFunc),
    HANDLES(aclrtUnSubscribeHostFunc),
    HANDLES(aclrtRegStreamStateCallback),
    HANDLES(aclrtExceptionInfoCallbackRegister),
    HANDLES(aclrtGetDeviceInfo),
    HANDLES(aclrtGetDeviceResLimit),
    HANDLES(aclrtGetStreamResLimit),
    HANDLES(aclrtGetDeviceSatMode),
    HANDLES(aclrtGetDeviceUtilizationRate),
    HANDLES(aclrtGetMemUsageInfo),
    HANDLES(aclrtGetPrimaryCtxState),
    HANDLES(aclrtDeviceGetStreamPriorityRange),
    HANDLES(aclrtCtxGetCurrentDefaultStream),
    HANDLES(aclrtGetEventId),
    DATA(aclrtIpcGetEventHandle),
    HANDLES(aclrtIpcOpenEventHandle),
    // models that are built
    HANDLES(aclmdlRIBindStream),
    HANDLES(aclmdlRIUnbindStream),
    HANDLES(aclmdlRIEndTask),
    HANDLES(aclmdlRIBuildEnd),
    HANDLES(aclrtActiveStream),
    HANDLES(aclrtSwitchStream),
    HANDLES(aclrtSetLabel),
    HANDLES(aclrtCreateLabelList),
    HANDLES(aclrtSwitchLabelByIndex),
    // what a CPU cannot have
    HANDLES(aclrtBinaryGetFunction),
    HANDLES(aclrtBinaryUnLoad),
    HANDLES(aclrtLaunchKernel),
    HANDLES(aclrtLaunchSIMTKernelWithArgsArray),
    HANDLES(aclrtFunctionGetParamCount),
    HANDLES(aclrtSnapShotProcessBackup),
    HANDLES(aclrtSnapShotCallbackRegister),
    HANDLES(aclmdlLoadFromFile),
    HANDLES(aclmdlUnload),
    HANDLES(aclmdlExecute),
};

void call_functions(World& w) {
  Objects own;
  const int64_t dims[] = {2, 3};
  auto* buffer = CALL(aclCreateDataBuffer, scratch, 64);
  auto* desc = CALL(aclCreateTensorDesc, ACL_FLOAT, 2, dims, ACL_FORMAT_ND);
  auto* set = CALL(aclmdlCreateDataset);
  auto* model = CALL(aclmdlCreateDesc);
  auto* attributes = CALL(aclopCreateAttr);
  auto* item = CALL(acltdtCreateDataItem, ACL_TENSOR_DATA_TENSOR, dims, 2, ACL_FLOAT, scratch, 24);
  auto* items = CALL(acltdtCreateDataset);
  auto* queue = CALL(acltdtCreateQueueAttr);
  auto* channel = has_context() ? CALL(acltdtCreateChannel, 0, "fuzz") : nullptr;
  aclrtNotify notify = nullptr;
  if (has_context()) JUDGE(Must::pass, aclrtCreateNotify, &notify, 0);
  aclmdlRI built = nullptr;
  aclrtStream held = nullptr;
  aclrtLabel label = nullptr;
  aclrtEvent shared = nullptr;
  if (has_context()) {
    JUDGE(Must::pass, aclmdlRIBuildBegin, &built, 0);
    JUDGE(Must::pass, aclrtCreateStreamWithConfig, &held, 0, ACL_STREAM_PERSISTENT);
    JUDGE(Must::pass, aclrtCreateLabel, &label);
    JUDGE(Must::pass, aclrtCreateEventExWithFlag, &shared, ACL_EVENT_IPC);
  }
  aclrtAllocatorDesc allocator = CALL(aclrtAllocatorCreateDesc);
  for (const void* made :
       std::initializer_list<const void*>{buffer, desc, set, model, attributes, item, items, queue,
                                          channel, notify, built, held, label, shared, allocator})
    own.add(made);
  for (int i = 0; i < 12; ++i) w.random.pick(kFunctions).call(w, own);
  w.pending = true;
  settle(w);  // work may read the scratch memory
  JUDGE(Must::pass, aclDestroyDataBuffer, buffer);
  CALL(aclDestroyTensorDesc, desc);
  JUDGE(Must::pass, aclmdlDestroyDataset, set);
  JUDGE(Must::pass, aclmdlDestroyDesc, model);
  CALL(aclopDestroyAttr, attributes);
  JUDGE(Must::pass, acltdtDestroyDataItem, item);
  JUDGE(Must::pass, acltdtDestroyDataset, items);
  JUDGE(Must::pass, acltdtDestroyQueueAttr, queue);
  if (channel != nullptr) JUDGE(Must::pass, acltdtDestroyChannel, channel);
  if (notify != nullptr) JUDGE(Must::either, aclrtDestroyNotify, notify);
  if (built != nullptr) {
    JUDGE(Must::pass, aclmdlRIDestroy, built);
    JUDGE(Must::pass, aclrtDestroyStream, held);
    JUDGE(Must::pass, aclrtDestroyLabel, label);
    JUDGE(Must::pass, aclrtDestroyEvent, shared);
  }
  JUDGE(Must::pass, aclrtAllocatorDestroyDesc, allocator);
}

}  // namespace

const std::vector<Action> table_actions = {{4, call_functions}};

}  // namespace fuzz
