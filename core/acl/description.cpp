// SPDX-License-Identifier: Apache-2.0
#include "core/acl/description.h"

#include <algorithm>
#include <climits>

#include "acl/acl_base_mdl.h"
#include "core/support/api_guard.h"

namespace openaclnn {

HandlePool<aclTensorDesc>& descriptions() { return pool_of<aclTensorDesc>(1 << 18); }

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

// Calls set(description) if the description is alive.
template <class Set>
aclError change(const char* call, aclTensorDesc* handle, Set set) {
  return guarded(call, ACL_ERROR_BAD_ALLOC,
                 [&] {
                   HandlePool<aclTensorDesc>::Hold description;
                   Status status = find_object(descriptions(), call, "desc", handle, &description);
                   return status.ok() ? set(*description) : status;
                 })
      .code();
}

// Reads a description; returns `otherwise`, with a sentence, if it is not alive.
template <class Get, class Value>
Value ask(const char* call, const aclTensorDesc* handle, Get get, Value otherwise) {
  HandlePool<aclTensorDesc>::Hold description;
  Status status = find_object(descriptions(), call, "desc", handle, &description);
  if (status.ok()) return get(*description);
  (void)status.code();
  return otherwise;
}

}  // namespace
}  // namespace openaclnn

using namespace openaclnn;

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
  HandlePool<aclTensorDesc>::Hold description;
  Status status = find_object(descriptions(), call, "desc", desc, &description);
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

size_t aclGetTensorDescSize(const aclTensorDesc* desc) {
  const auto size = [](const aclTensorDesc& d) {
    size_t bytes = 0;
    return byte_count(d, &bytes) ? bytes : 0;
  };
  return ask("aclGetTensorDescSize", desc, size, size_t{0});
}

size_t aclGetTensorDescElementCount(const aclTensorDesc* desc) {
  const auto count = [](const aclTensorDesc& d) {
    int64_t elements = 1;
    for (const int64_t dim : d.dims) {
      if (dim < 0 || __builtin_mul_overflow(elements, dim, &elements)) return size_t{0};
    }
    return static_cast<size_t>(elements);
  };
  return ask("aclGetTensorDescElementCount", desc, count, size_t{0});
}

int64_t aclGetTensorDescDim(const aclTensorDesc* desc, size_t index) {
  const auto dim = [=](const aclTensorDesc& d) {
    return index < d.dims.size() ? d.dims[index] : int64_t{-1};
  };
  return ask("aclGetTensorDescDim", desc, dim, int64_t{-1});
}

const char* aclGetTensorDescName(aclTensorDesc* desc) {
  const auto name = [](const aclTensorDesc& d) { return d.name.c_str(); };
  return ask("aclGetTensorDescName", desc, name, "");
}

aclError aclSetTensorShapeRange(aclTensorDesc* desc, size_t dimsCount,
                                int64_t dimsRange[][ACL_TENSOR_SHAPE_RANGE_NUM]) {
  constexpr const char* call = "aclSetTensorShapeRange";
  return change(call, desc, [&](aclTensorDesc& description) {
    Status status = check_dims(call, static_cast<int>(std::min<size_t>(dimsCount, INT_MAX)),
                               reinterpret_cast<const int64_t*>(dimsRange));
    if (!status.ok()) return status;
    description.ranges.clear();
    for (size_t i = 0; i < dimsCount; ++i)
      description.ranges.push_back({dimsRange[i][0], dimsRange[i][1]});
    return status;
  });
}

aclError aclGetTensorDescDimRange(const aclTensorDesc* desc, size_t index, size_t dimRangeNum,
                                  int64_t* dimRange) {
  constexpr const char* call = "aclGetTensorDescDimRange";
  HandlePool<aclTensorDesc>::Hold description;
  Status status = find_object(descriptions(), call, "desc", desc, &description);
  if (status.ok()) status = not_null(call, "dimRange", dimRange);
  if (!status.ok()) return status.code();
  if (dimRangeNum < ACL_TENSOR_SHAPE_RANGE_NUM || index >= description->ranges.size()) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "dimRangeNum must be at least 2 and index in [0, %zu), but got %zu and %zu",
                description->ranges.size(), dimRangeNum, index)
        .code();
  }
  dimRange[0] = description->ranges[index].first;
  dimRange[1] = description->ranges[index].second;
  return ACL_SUCCESS;
}

aclError aclSetTensorConst(aclTensorDesc* desc, void* dataBuffer, size_t length) {
  constexpr const char* call = "aclSetTensorConst";
  return change(call, desc, [&](aclTensorDesc& description) {
    if (Status null = not_null(call, "dataBuffer", dataBuffer); !null.ok()) return null;
    if (length == 0) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "length must be at least 1");
    }
    description.constant = dataBuffer;
    description.constant_bytes = length;
    return Status();
  });
}
