// SPDX-License-Identifier: Apache-2.0
// What programs make before they load a model: datasets, which are lists of data buffers, and
// descriptions, which stay empty. Loading is refused (src/openaclnn/rows/refused.py).
#include <vector>

#include "acl/acl_mdl.h"
#include "core/acl/description.h"
#include "core/support/api_guard.h"

struct aclmdlDataset {
  std::vector<aclDataBuffer*> buffers;
};

struct aclmdlDesc {};

using namespace openaclnn;

namespace {

HandlePool<aclmdlDataset>& datasets() { return pool_of<aclmdlDataset>(1 << 14); }
HandlePool<aclmdlDesc>& models() { return pool_of<aclmdlDesc>(1 << 12); }

template <class T>
T* create_in(const char* call, HandlePool<T>& pool) {
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&]() -> T* {
    T* made = pool.create();
    if (made != nullptr) return made;
    return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, call, "too many live objects").null();
  });
}

Status find_model(const char* call, const aclmdlDesc* handle) {
  HandlePool<aclmdlDesc>::Hold found;
  return find_object(models(), call, "modelDesc", handle, &found);
}

// A query of a live description has nothing to answer with.
Status nothing_described(const char* call, const aclmdlDesc* handle) {
  if (Status status = find_model(call, handle); !status.ok()) return status;
  return fail(ACL_ERROR_INVALID_PARAM, Reason::call_missing, call,
              "the description is empty: no .om model can be loaded here");
}

template <class T>
T read_nothing(const char* call, const aclmdlDesc* handle, T value) {
  (void)nothing_described(call, handle).code();
  return value;
}

template <class T>
aclError write_nothing(const char* call, const aclmdlDesc* handle, const char* name, T* result) {
  Status status = not_null(call, name, result);
  if (!status.ok()) return status.code();
  *result = {};
  return nothing_described(call, handle).code();
}

// A count, which is 0 for a live description.
size_t count_nothing(const char* call, const aclmdlDesc* handle) {
  (void)find_model(call, handle).code();
  return 0;
}

}  // namespace

aclmdlDesc* aclmdlCreateDesc(void) { return create_in("aclmdlCreateDesc", models()); }

aclError aclmdlDestroyDesc(aclmdlDesc* modelDesc) {
  return end_object(models(), "aclmdlDestroyDesc", "modelDesc", modelDesc);
}

size_t aclmdlGetNumInputs(aclmdlDesc* modelDesc) {
  return count_nothing("aclmdlGetNumInputs", modelDesc);
}

size_t aclmdlGetNumOutputs(aclmdlDesc* modelDesc) {
  return count_nothing("aclmdlGetNumOutputs", modelDesc);
}

size_t aclmdlGetInputSizeByIndex(aclmdlDesc* modelDesc, size_t) {
  return read_nothing("aclmdlGetInputSizeByIndex", modelDesc, size_t{0});
}

size_t aclmdlGetOutputSizeByIndex(aclmdlDesc* modelDesc, size_t) {
  return read_nothing("aclmdlGetOutputSizeByIndex", modelDesc, size_t{0});
}

aclDataType aclmdlGetInputDataType(const aclmdlDesc* modelDesc, size_t) {
  return read_nothing("aclmdlGetInputDataType", modelDesc, ACL_DT_UNDEFINED);
}

aclDataType aclmdlGetOutputDataType(const aclmdlDesc* modelDesc, size_t) {
  return read_nothing("aclmdlGetOutputDataType", modelDesc, ACL_DT_UNDEFINED);
}

aclFormat aclmdlGetInputFormat(const aclmdlDesc* modelDesc, size_t) {
  return read_nothing("aclmdlGetInputFormat", modelDesc, ACL_FORMAT_UNDEFINED);
}

aclFormat aclmdlGetOutputFormat(const aclmdlDesc* modelDesc, size_t) {
  return read_nothing("aclmdlGetOutputFormat", modelDesc, ACL_FORMAT_UNDEFINED);
}

const char* aclmdlGetInputNameByIndex(const aclmdlDesc* modelDesc, size_t) {
  return read_nothing("aclmdlGetInputNameByIndex", modelDesc, "");
}

const char* aclmdlGetOutputNameByIndex(const aclmdlDesc* modelDesc, size_t) {
  return read_nothing("aclmdlGetOutputNameByIndex", modelDesc, "");
}

aclError aclmdlGetInputIndexByName(const aclmdlDesc* modelDesc, const char*, size_t* index) {
  return write_nothing("aclmdlGetInputIndexByName", modelDesc, "index", index);
}

aclError aclmdlGetInputDims(const aclmdlDesc* modelDesc, size_t, aclmdlIODims* dims) {
  return write_nothing("aclmdlGetInputDims", modelDesc, "dims", dims);
}

aclError aclmdlGetOutputDims(const aclmdlDesc* modelDesc, size_t, aclmdlIODims* dims) {
  return write_nothing("aclmdlGetOutputDims", modelDesc, "dims", dims);
}

aclError aclmdlGetCurOutputDims(const aclmdlDesc* modelDesc, size_t, aclmdlIODims* dims) {
  return write_nothing("aclmdlGetCurOutputDims", modelDesc, "dims", dims);
}

aclError aclmdlGetDynamicBatch(const aclmdlDesc* modelDesc, aclmdlBatch* batch) {
  return write_nothing("aclmdlGetDynamicBatch", modelDesc, "batch", batch);
}

aclError aclmdlGetDynamicHW(const aclmdlDesc* modelDesc, size_t, aclmdlHW* hw) {
  return write_nothing("aclmdlGetDynamicHW", modelDesc, "hw", hw);
}

// ---- datasets ----

aclmdlDataset* aclmdlCreateDataset(void) { return create_in("aclmdlCreateDataset", datasets()); }

// The buffers stay alive.
aclError aclmdlDestroyDataset(const aclmdlDataset* dataset) {
  return end_object(datasets(), "aclmdlDestroyDataset", "dataset", dataset);
}

aclError aclmdlAddDatasetBuffer(aclmdlDataset* dataset, aclDataBuffer* dataBuffer) {
  constexpr const char* call = "aclmdlAddDatasetBuffer";
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&] {
    HandlePool<aclmdlDataset>::Hold found;
    HandlePool<aclDataBuffer>::Hold buffer;
    Status status = find_object(datasets(), call, "dataset", dataset, &found);
    if (status.ok()) status = find_object(buffers(), call, "dataBuffer", dataBuffer, &buffer);
    if (status.ok()) found->buffers.push_back(dataBuffer);
    return status.code();
  });
}

size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset* dataset) {
  HandlePool<aclmdlDataset>::Hold found;
  const Status status =
      find_object(datasets(), "aclmdlGetDatasetNumBuffers", "dataset", dataset, &found);
  if (status.ok()) return found->buffers.size();
  (void)status.code();
  return 0;
}

aclDataBuffer* aclmdlGetDatasetBuffer(const aclmdlDataset* dataset, size_t index) {
  constexpr const char* call = "aclmdlGetDatasetBuffer";
  HandlePool<aclmdlDataset>::Hold found;
  if (Status status = find_object(datasets(), call, "dataset", dataset, &found); !status.ok())
    return status.null();
  if (index < found->buffers.size()) return found->buffers[index];
  return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
              "index must be in [0, %zu), but got %zu", found->buffers.size(), index)
      .null();
}
