// SPDX-License-Identifier: Apache-2.0
// Items and datasets of channels. An item points to memory of the program; one that was received
// holds a copy and belongs to its dataset.
#include "core/acl/tdt.h"

#include <algorithm>
#include <utility>

#include "core/acl/description.h"
#include "core/support/api_guard.h"

using namespace openaclnn;

namespace openaclnn {

HandlePool<acltdtDataItem>& tdt_items() { return pool_of<acltdtDataItem>(1 << 16); }
HandlePool<acltdtDataset>& tdt_datasets() { return pool_of<acltdtDataset>(1 << 14); }

}  // namespace openaclnn

namespace {

constexpr size_t kMostItemDims = 128;

template <class T, class Get>
T ask_item(const char* call, const acltdtDataItem* handle, T otherwise, Get get) {
  HandlePool<acltdtDataItem>::Hold item;
  const Status status = find_object(tdt_items(), call, "dataItem", handle, &item);
  if (status.ok()) return get(*item);
  (void)status.code();
  return otherwise;
}

}  // namespace

acltdtDataItem* acltdtCreateDataItem(acltdtTensorType tdtType, const int64_t* dims, size_t dimNum,
                                     aclDataType dataType, void* data, size_t size) {
  constexpr const char* call = "acltdtCreateDataItem";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&]() -> acltdtDataItem* {
    const int type = static_cast<int>(tdtType);
    if ((dims == nullptr) != (dimNum == 0) || dimNum > kMostItemDims) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "dimNum must be in [0, %zu], and dims NULL for 0 alone, but got %zu",
                  kMostItemDims, dimNum)
          .null();
    }
    if (type < ACL_TENSOR_DATA_UNDEFINED || type > ACL_TENSOR_DATA_END_TENSOR) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "tdtType must be in [-1, 4], but got %d", type)
          .null();
    }
    acltdtDataItem item;
    item.type = tdtType;
    item.dtype = dataType;
    item.dims.assign(dims, dims + dimNum);
    item.data = data;
    item.size = size;
    acltdtDataItem* made = tdt_items().create(std::move(item));
    if (made != nullptr) return made;
    return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, call, "too many live objects").null();
  });
}

aclError acltdtDestroyDataItem(acltdtDataItem* dataItem) {
  constexpr const char* call = "acltdtDestroyDataItem";
  HandlePool<acltdtDataItem>::Hold item;
  Status status = find_object(tdt_items(), call, "dataItem", dataItem, &item);
  if (status.ok() && item->is_received) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::foreign_handle, call,
                  "dataItem was received: it ends with its dataset");
  }
  if (status.ok()) item.withdraw(HandlePool<acltdtDataItem>::End::destroyed);
  return status.code();
}

acltdtTensorType acltdtGetTensorTypeFromItem(const acltdtDataItem* dataItem) {
  return ask_item("acltdtGetTensorTypeFromItem", dataItem, ACL_TENSOR_DATA_UNDEFINED,
                  [](const acltdtDataItem& item) { return item.type; });
}

aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem* dataItem) {
  return ask_item("acltdtGetDataTypeFromItem", dataItem, ACL_DT_UNDEFINED,
                  [](const acltdtDataItem& item) { return item.dtype; });
}

void* acltdtGetDataAddrFromItem(const acltdtDataItem* dataItem) {
  return ask_item("acltdtGetDataAddrFromItem", dataItem, static_cast<void*>(nullptr),
                  [](const acltdtDataItem& item) { return item.data; });
}

size_t acltdtGetDataSizeFromItem(const acltdtDataItem* dataItem) {
  return ask_item("acltdtGetDataSizeFromItem", dataItem, size_t{0},
                  [](const acltdtDataItem& item) { return item.size; });
}

size_t acltdtGetDimNumFromItem(const acltdtDataItem* dataItem) {
  return ask_item("acltdtGetDimNumFromItem", dataItem, size_t{0},
                  [](const acltdtDataItem& item) { return item.dims.size(); });
}

aclError acltdtGetDimsFromItem(const acltdtDataItem* dataItem, int64_t* dims, size_t dimNum) {
  constexpr const char* call = "acltdtGetDimsFromItem";
  HandlePool<acltdtDataItem>::Hold item;
  Status status = find_object(tdt_items(), call, "dataItem", dataItem, &item);
  if (!status.ok()) return status.code();
  if ((dims == nullptr && dimNum > 0) || dimNum < item->dims.size()) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "dims must have room for the rank %zu, but dimNum is %zu", item->dims.size(),
                dims == nullptr ? 0 : dimNum)
        .code();
  }
  std::copy(item->dims.begin(), item->dims.end(), dims);
  return ACL_SUCCESS;
}

// No item here is a slice.
aclError acltdtGetSliceInfoFromItem(const acltdtDataItem* dataItem, size_t* sliceNum,
                                    size_t* sliceId) {
  constexpr const char* call = "acltdtGetSliceInfoFromItem";
  HandlePool<acltdtDataItem>::Hold item;
  Status status = find_object(tdt_items(), call, "dataItem", dataItem, &item);
  if (status.ok()) status = not_null(call, "sliceNum", sliceNum);
  if (status.ok()) status = not_null(call, "sliceId", sliceId);
  if (status.ok()) *sliceNum = *sliceId = 0;
  return status.code();
}

// ---- datasets ----

acltdtDataset* acltdtCreateDataset(void) {
  acltdtDataset* made = tdt_datasets().create();
  if (made != nullptr) return made;
  return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, "acltdtCreateDataset",
              "too many live objects")
      .null();
}

aclError acltdtDestroyDataset(acltdtDataset* dataset) {
  return end_object(tdt_datasets(), "acltdtDestroyDataset", "dataset", dataset,
                    [](acltdtDataset& own) {
                      if (!own.is_received) return;
                      for (const acltdtDataItem* item : own.items) tdt_items().destroy(item);
                    });
}

aclError acltdtAddDataItem(acltdtDataset* dataset, acltdtDataItem* dataItem) {
  constexpr const char* call = "acltdtAddDataItem";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    HandlePool<acltdtDataset>::Hold found;
    HandlePool<acltdtDataItem>::Hold item;
    Status status = find_object(tdt_datasets(), call, "dataset", dataset, &found);
    if (status.ok()) status = find_object(tdt_items(), call, "dataItem", dataItem, &item);
    if (status.ok() && found->is_received) {
      status = fail(ACL_ERROR_FEATURE_UNSUPPORTED, Reason::foreign_handle, call,
                    "dataset was received and takes no more items");
    }
    if (status.ok()) found->items.push_back(dataItem);
    return status.code();
  });
}

acltdtDataItem* acltdtGetDataItem(const acltdtDataset* dataset, size_t index) {
  constexpr const char* call = "acltdtGetDataItem";
  HandlePool<acltdtDataset>::Hold found;
  if (Status status = find_object(tdt_datasets(), call, "dataset", dataset, &found); !status.ok())
    return status.null();
  if (index < found->items.size()) return found->items[index];
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "index must be in [0, %zu), but got %zu", found->items.size(), index)
      .null();
}

size_t acltdtGetDatasetSize(const acltdtDataset* dataset) {
  HandlePool<acltdtDataset>::Hold found;
  const Status status =
      find_object(tdt_datasets(), "acltdtGetDatasetSize", "dataset", dataset, &found);
  if (status.ok()) return found->items.size();
  (void)status.code();
  return 0;
}

const char* acltdtGetDatasetName(const acltdtDataset* dataset) {
  HandlePool<acltdtDataset>::Hold found;
  if (Status status =
          find_object(tdt_datasets(), "acltdtGetDatasetName", "dataset", dataset, &found);
      !status.ok())
    return status.null();
  return "";
}
