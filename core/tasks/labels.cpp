// SPDX-License-Identifier: Apache-2.0
// Labels: places in the streams of built models, to which tasks jump.
#include <atomic>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/runtime/device.h"
#include "core/runtime/model_steps.h"
#include "core/memory/transfer.h"

using namespace openaclnn;

namespace {

constexpr size_t kMostLabels = 65535;

// Models know the number, so they outlive the handle.
struct Label {
  static constexpr bool kPinned = true;
  uint32_t number;
  explicit Label(uint32_t its) : number(its) {}
};

struct LabelList {
  static constexpr bool kPinned = true;
  std::vector<uint32_t> numbers;
  explicit LabelList(std::vector<uint32_t> its) : numbers(std::move(its)) {}
};

std::atomic<uint32_t> labels_made = 0;

HandlePool<Label>& labels() {
  return pool_of<Label>(kMostLabels, [] { labels().forget_pins(); });
}

HandlePool<LabelList>& label_lists() {
  return pool_of<LabelList>(1 << 16, [] { label_lists().forget_pins(); });
}

template <class T>
Status find(const char* call, const char* argument, HandlePool<T>& pool, const void* handle,
            typename HandlePool<T>::Pin* found) {
  if (Status null = not_null(call, argument, handle, ObjectKind::graph); !null.ok()) return null;
  *found = typename HandlePool<T>::Pin(pool, handle);
  if (*found) return {};
  return dead_handle(ACL_ERROR_RT_INVALID_HANDLE, call, ObjectKind::graph, argument, handle);
}

template <class T>
aclError destroy(const char* call, const char* argument, HandlePool<T>& pool, const void* handle) {
  typename HandlePool<T>::Pin found;
  const Status status = find(call, argument, pool, handle, &found);
  found.release();
  if (status.ok()) pool.destroy(handle);
  return status.code();
}

Status too_many(const char* call, const char* what) {
  return fail(ACL_ERROR_RT_NO_STREAM_RESOURCE, Reason::no_resource, call, "too many live %s", what);
}

Status create_label(const char* call, aclrtLabel* label) {
  Status status = not_null(call, "label", label);
  if (status.ok() && !current_context()) status = no_context(call);
  if (!status.ok()) return status;
  Label* made = labels().create(labels_made++);
  if (made == nullptr) return too_many(call, "labels");
  *label = made;
  return {};
}

Status create_list(const char* call, const aclrtLabel* given, size_t count, aclrtLabelList* list) {
  Status status = not_null(call, "labels", given);
  if (status.ok()) status = not_null(call, "labelList", list);
  if (!status.ok()) return status;
  if (count == 0 || count > kMostLabels) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "num must be in [1, %zu], but got %zu", kMostLabels, count);
  }
  std::vector<uint32_t> numbers;
  for (size_t i = 0; i < count; ++i) {
    HandlePool<Label>::Pin label;
    status = find(call, "a label of the list", labels(), given[i], &label);
    if (!status.ok()) return status;
    numbers.push_back(label->number);
  }
  LabelList* made = label_lists().create(std::move(numbers));
  if (made == nullptr) return too_many(call, "lists of labels");
  *list = made;
  return {};
}

Status add_jump(const char* call, const void* index, uint32_t count, const void* handle,
                aclrtStream stream) {
  Status status = not_null(call, "ptr", index, ObjectKind::device_memory);
  HandlePool<LabelList>::Pin list;
  if (status.ok()) status = find(call, "labelList", label_lists(), handle, &list);
  if (status.ok() && count != list->numbers.size()) {
    status =
        fail(ACL_ERROR_RT_PARAM_INVALID, Reason::wrong_value, call,
             "maxValue must be %zu, the number of labels, but got %u", list->numbers.size(), count);
  }
  if (status.ok()) status = check_known_range(call, "ptr", index, sizeof(uint32_t));
  if (!status.ok()) return status;
  ModelStep step{ModelStep::Kind::jump};
  step.left = index, step.labels = list->numbers;
  return add_step(call, stream, std::move(step));
}

}  // namespace

aclError aclrtCreateLabel(aclrtLabel* label) {
  return guarded_status("aclrtCreateLabel",
                        [&](const char* call) { return create_label(call, label); });
}

aclError aclrtDestroyLabel(aclrtLabel label) {
  return destroy("aclrtDestroyLabel", "label", labels(), label);
}

aclError aclrtSetLabel(aclrtLabel label, aclrtStream stream) {
  return guarded_status("aclrtSetLabel", [&](const char* call) {
    HandlePool<Label>::Pin own;
    Status status = find(call, "label", labels(), label, &own);
    return status.ok() ? add_step(call, stream, {ModelStep::Kind::label, own->number}) : status;
  });
}

aclError aclrtCreateLabelList(aclrtLabel* labels, size_t num, aclrtLabelList* labelList) {
  return guarded_status("aclrtCreateLabelList", [&](const char* call) {
    return create_list(call, labels, num, labelList);
  });
}

aclError aclrtDestroyLabelList(aclrtLabelList labelList) {
  return destroy("aclrtDestroyLabelList", "labelList", label_lists(), labelList);
}

aclError aclrtSwitchLabelByIndex(void* ptr, uint32_t maxValue, aclrtLabelList labelList,
                                 aclrtStream stream) {
  return guarded_status("aclrtSwitchLabelByIndex", [&](const char* call) {
    return add_jump(call, ptr, maxValue, labelList, stream);
  });
}
