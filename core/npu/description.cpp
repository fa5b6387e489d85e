// SPDX-License-Identifier: Apache-2.0
#include "core/npu/description.h"

#include <algorithm>

#include "core/npu/calls.h"
#include "core/runtime/api_guard.h"

namespace openaclnn::npu {

HandlePool<aclTensorDesc>& descriptions() { return pool_of<aclTensorDesc>(1 << 18); }
HandlePool<aclDataBuffer>& buffers() { return pool_of<aclDataBuffer>(1 << 18); }
HandlePool<aclopAttr>& attributes() { return pool_of<aclopAttr>(1 << 16); }

bool byte_count(const aclTensorDesc& description, size_t* bytes) {
  auto count = static_cast<int64_t>(aclDataTypeSize(description.dtype));
  if (count == 0) return false;
  for (size_t i = description.dims.size(); i-- > 0;) {
    const int64_t dim = description.dims[i];
    if (dim < 0 || __builtin_mul_overflow(count, dim, &count)) return false;
  }
  *bytes = static_cast<size_t>(count);
  return true;
}

namespace {

constexpr int kMostDims = 25;

Status check_dims(const char* call, int count, const int64_t* dims) {
  if (count < 0 || count > kMostDims) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "numDims must be in [0, %d], but got %d", kMostDims, count);
  }
  return count == 0 ? Status() : not_null(call, "dims", dims);
}

template <class T>
Status find(const HandlePool<T>& pool, const char* call, const char* argument, const void* handle,
            T** found) {
  if (Status status = not_null(call, argument, handle); !status.ok()) return status;
  *found = pool.find(handle);
  if (*found != nullptr) return {};
  return fail(ACL_ERROR_INVALID_PARAM, Reason::dead_handle, call,
              "%s %p was destroyed or never created", argument, handle);
}

// Calls set(description) if the description is alive.
template <class Set>
aclError change(const char* call, aclTensorDesc* handle, Set set) {
  return guarded(call, ACL_ERROR_BAD_ALLOC,
                 [&] {
                   aclTensorDesc* description;
                   Status status = find(descriptions(), call, "desc", handle, &description);
                   return status.ok() ? set(*description) : status;
                 })
      .code();
}

// Reads a description; returns `otherwise`, with a sentence, if it is not alive.
template <class Get, class Value>
Value ask(const char* call, const aclTensorDesc* handle, Get get, Value otherwise) {
  aclTensorDesc* description;
  Status status = find(descriptions(), call, "desc", handle, &description);
  if (status.ok()) return get(*description);
  (void)status.code();
  return otherwise;
}

}  // namespace
}  // namespace openaclnn::npu

using namespace openaclnn;
using namespace openaclnn::npu;

aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims, const int64_t* dims,
                                   aclFormat format) {
  constexpr const char* call = "aclCreateTensorDesc";
  if (Status status = check_dims(call, numDims, dims); !status.ok()) return status.null();
  return guarded(call, ACL_ERROR_BAD_ALLOC, [&]() -> aclTensorDesc* {
    const std::vector<int64_t> shape(dims, dims + numDims);
    aclTensorDesc* made = descriptions().create(dataType, format, shape);
    if (made == nullptr)
      return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, call, "too many live objects").null();
    return made;
  });
}

void aclDestroyTensorDesc(const aclTensorDesc* desc) { descriptions().destroy(desc); }

aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index, int64_t* dimSize) {
  constexpr const char* call = "aclGetTensorDescDimV2";
  aclTensorDesc* description;
  Status status = find(descriptions(), call, "desc", desc, &description);
  if (status.ok()) status = not_null(call, "dimSize", dimSize);
  if (status.ok() && index >= description->dims.size()) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "index must be in [0, %zu), but got %zu", description->dims.size(), index);
  }
  if (status.ok()) *dimSize = description->dims[index];
  return status.code();
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
  const auto format = [](const aclTensorDesc& d) { return d.format; };
  return ask("aclGetTensorDescFormat", desc, format, ACL_FORMAT_UNDEFINED);
}

aclDataType aclGetTensorDescType(const aclTensorDesc* desc) {
  const auto dtype = [](const aclTensorDesc& d) { return d.dtype; };
  return ask("aclGetTensorDescType", desc, dtype, ACL_DT_UNDEFINED);
}

size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
  const auto rank = [](const aclTensorDesc& d) { return d.dims.size(); };
  return ask("aclGetTensorDescNumDims", desc, rank, size_t{0});
}

void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
  (void)change("aclSetTensorDescName", desc, [&](aclTensorDesc& description) {
    description.name = name == nullptr ? "" : name;
    return Status();
  });
}

aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
  return change("aclSetTensorFormat", desc, [&](aclTensorDesc& description) {
    description.storage_format = format;
    return Status();
  });
}

aclError aclSetTensorShape(aclTensorDesc* desc, int numDims, const int64_t* dims) {
  constexpr const char* call = "aclSetTensorShape";
  return change(call, desc, [&](aclTensorDesc& description) {
    Status status = check_dims(call, numDims, dims);
    if (status.ok()) description.storage_dims.assign(dims, dims + numDims);
    return status;
  });
}

aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType) {
  return change("aclSetTensorPlaceMent", desc, [&](aclTensorDesc& description) {
    description.place = memType;
    return Status();
  });
}

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  aclDataBuffer* made = buffers().create(data, size);
  if (made != nullptr) return made;
  return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, "aclCreateDataBuffer",
              "too many live objects")
      .null();
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  aclDataBuffer* found;
  Status status = find(buffers(), "aclDestroyDataBuffer", "dataBuffer", dataBuffer, &found);
  if (status.ok()) buffers().destroy(found);
  return status.code();
}

// ---- attributes: as values, and as text for refusals ----

namespace {

template <class Show>
aclError set_attribute(const char* call, aclopAttr* handle, const char* name, Show show) {
  return guarded(call, ACL_ERROR_BAD_ALLOC,
                 [&] {
                   aclopAttr* attribute;
                   Status status = find(attributes(), call, "attr", handle, &attribute);
                   if (status.ok()) status = not_null(call, "attrName", name);
                   if (!status.ok()) return status;
                   std::string& text = attribute->text;
                   if (!text.empty()) text += ", ";
                   text += name;
                   text += '=';
                   attribute->values.push_back({name, {}, {}, {}});
                   return show(text, attribute->values.back());
                 })
      .code();
}

template <class T>
void keep(Attribute& kept, const T* values, int count) {
  kept.integers.assign(values, values + count);
  kept.reals.assign(values, values + count);
}

template <class T>
aclError set_number(const char* call, aclopAttr* attr, const char* name, T value) {
  return set_attribute(call, attr, name, [&](std::string& text, Attribute& kept) {
    text += std::to_string(value);
    keep(kept, &value, 1);
    return Status();
  });
}

template <class T>
Status show_list(const char* call, int count, const T* values, std::string& text) {
  if (count > 0) {
    if (Status status = not_null(call, "values", values); !status.ok()) return status;
  }
  text += '[';
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(values[i]);
  text += ']';
  return {};
}

template <class T>
aclError set_list(const char* call, aclopAttr* attr, const char* name, int count, const T* values) {
  return set_attribute(call, attr, name, [&](std::string& text, Attribute& kept) {
    const Status status = show_list(call, count, values, text);
    if (status.ok() && count > 0) keep(kept, values, count);
    return status;
  });
}

}  // namespace

aclopAttr* aclopCreateAttr(void) {
  aclopAttr* made = attributes().create();
  if (made != nullptr) return made;
  return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, "aclopCreateAttr", "too many live objects")
      .null();
}

void aclopDestroyAttr(const aclopAttr* attr) { attributes().destroy(attr); }

aclError aclopSetAttrBool(aclopAttr* attr, const char* attrName, uint8_t attrValue) {
  return set_number("aclopSetAttrBool", attr, attrName, static_cast<int>(attrValue));
}

aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName, int64_t attrValue) {
  return set_number("aclopSetAttrInt", attr, attrName, attrValue);
}

aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName, float attrValue) {
  return set_number("aclopSetAttrFloat", attr, attrName, attrValue);
}

aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName, aclDataType attrValue) {
  return set_number("aclopSetAttrDataType", attr, attrName, static_cast<int>(attrValue));
}

aclError aclopSetAttrString(aclopAttr* attr, const char* attrName, const char* attrValue) {
  constexpr const char* call = "aclopSetAttrString";
  return set_attribute(call, attr, attrName, [&](std::string& text, Attribute& kept) {
    if (Status status = not_null(call, "attrValue", attrValue); !status.ok()) return status;
    text += attrValue;
    kept.text = attrValue;
    return Status();
  });
}

aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName, int numValues,
                              const uint8_t* values) {
  return set_list("aclopSetAttrListBool", attr, attrName, numValues, values);
}

aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName, int numValues,
                             const int64_t* values) {
  return set_list("aclopSetAttrListInt", attr, attrName, numValues, values);
}

aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName, int numValues,
                               const float* values) {
  return set_list("aclopSetAttrListFloat", attr, attrName, numValues, values);
}

aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName, int numLists,
                                 const int* numValues, const int64_t* const values[]) {
  constexpr const char* call = "aclopSetAttrListListInt";
  return set_attribute(call, attr, attrName, [&](std::string& text, Attribute&) {
    if (numLists > 0) {
      Status status = not_null(call, "numValues", numValues);
      if (status.ok()) status = not_null(call, "values", values);
      if (!status.ok()) return status;
    }
    Status status;
    for (int i = 0; i < numLists && status.ok(); ++i) {
      status = show_list(call, numValues[i], values[i], text);
    }
    return status;
  });
}
