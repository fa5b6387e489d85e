// SPDX-License-Identifier: Apache-2.0
// The C functions that copy rows and batches, and hints to the cache.
#include <cstdint>

#include "acl/acl_rt.h"
#include "core/support/api_guard.h"
#include "core/memory/transfer.h"

using namespace openaclnn;

namespace {

constexpr size_t kMostWidth = 5'000'000, kMostHeight = 5'242'880;

// Both pitches reach from row to row, and no product overflows.
Status check_rows(const char* call, const Transfer& copy, int kind, int last_kind) {
  if (kind < ACL_MEMCPY_HOST_TO_DEVICE || kind > last_kind) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "kind must be in [1, %d], but got %d", last_kind, kind);
  }
  if (copy.count == 0 || copy.count > kMostWidth || copy.rows == 0 || copy.rows > kMostHeight) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "width must be in [1, %zu] and height in [1, %zu], but got %zu and %zu", kMostWidth,
                kMostHeight, copy.count, copy.rows);
  }
  constexpr size_t kMostPitch = SIZE_MAX / 2 / kMostHeight;
  for (const size_t pitch : {copy.dst_pitch, copy.src_pitch}) {
    if (pitch >= copy.count && pitch <= kMostPitch) continue;
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "dpitch and spitch must be in [width, %zu], but got %zu and %zu with width %zu",
                kMostPitch, copy.dst_pitch, copy.src_pitch, copy.count);
  }
  return {};
}

struct Batch {
  void** dsts;
  size_t* limits;
  void** srcs;
  size_t* sizes;
  size_t count;
  aclrtMemcpyBatchAttr* attributes;
  size_t* indexes;
  size_t attribute_count;
};

bool is_host(int type) {
  return type == ACL_MEM_LOCATION_TYPE_HOST || type == ACL_MEM_LOCATION_TYPE_HOST_NUMA;
}

// The direction of a batch, from its first attribute; -1 if it is neither.
int direction(const aclrtMemcpyBatchAttr& attribute) {
  const int src = attribute.srcLoc.type, dst = attribute.dstLoc.type;
  if (is_host(src) && dst == ACL_MEM_LOCATION_TYPE_DEVICE) return ACL_MEMCPY_HOST_TO_DEVICE;
  if (src == ACL_MEM_LOCATION_TYPE_DEVICE && is_host(dst)) return ACL_MEMCPY_DEVICE_TO_HOST;
  return -1;
}

Status check_batch(const char* call, const Batch& batch, int* kind) {
  const std::pair<const char*, const void*> pointers[] = {
      {"dsts", batch.dsts},   {"destMaxs", batch.limits},  {"srcs", batch.srcs},
      {"sizes", batch.sizes}, {"attrs", batch.attributes}, {"attrsIndexes", batch.indexes}};
  for (const auto& [name, pointer] : pointers) {
    if (Status null = not_null(call, name, pointer); !null.ok()) return null;
  }
  if (batch.count == 0 || batch.attribute_count == 0 || batch.attribute_count > batch.count) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                "numBatches must be at least 1 and numAttrs in [1, numBatches], but got %zu and "
                "%zu",
                batch.count, batch.attribute_count);
  }
  *kind = direction(batch.attributes[0]);
  for (size_t i = 0; i < batch.attribute_count; ++i) {
    const bool ascends = i == 0 ? batch.indexes[0] == 0 : batch.indexes[i] > batch.indexes[i - 1];
    if (!ascends || batch.indexes[i] >= batch.count) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "attrsIndexes must begin with 0, ascend and stay below numBatches %zu, but entry "
                  "%zu is %zu",
                  batch.count, i, batch.indexes[i]);
    }
    if (*kind < 0 || direction(batch.attributes[i]) != *kind) {
      return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "all copies must go from host to device, or all from device to host, but attrs "
                  "%zu has locations of type %d and %d",
                  i, static_cast<int>(batch.attributes[i].srcLoc.type),
                  static_cast<int>(batch.attributes[i].dstLoc.type));
    }
  }
  return {};
}

// Checks all copies first, so that a refused batch copies nothing.
template <class F>
Status run_batch(const char* call, const Batch& batch, size_t* failed, F copy_one) {
  if (Status null = not_null(call, "failIndex", failed); !null.ok()) return null;
  *failed = SIZE_MAX;
  int kind = 0;
  Status status = check_batch(call, batch, &kind);
  const auto made = [&](size_t i) {
    return Transfer{batch.dsts[i], batch.srcs[i], batch.sizes[i], 0, call};
  };
  const auto note = [&](size_t i) {
    if (!status.ok()) *failed = i;
  };
  for (size_t i = 0; i < batch.count && status.ok(); note(i), ++i) {
    status = check_copy(call, made(i), batch.limits[i], static_cast<aclrtMemcpyKind>(kind));
    if (status.ok()) continue;
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_memory, call,
                  "copy %zu of the batch is refused: %zu bytes from %p to %p, which has %zu", i,
                  batch.sizes[i], batch.srcs[i], batch.dsts[i], batch.limits[i]);
  }
  for (size_t i = 0; i < batch.count && status.ok(); note(i), ++i) status = copy_one(made(i));
  return status;
}

}  // namespace

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                       size_t height, aclrtMemcpyKind kind) {
  const Transfer copy{dst, src, width, 0, "aclrtMemcpy2d", height, dpitch, spitch};
  Status status = check_rows(copy.call, copy, kind, ACL_MEMCPY_DEVICE_TO_HOST);
  if (status.ok()) status = check_copy(copy.call, copy, copy.written_span(), kind);
  if (status.ok()) status = run_now(copy);
  return status.code();
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
  const Transfer copy{dst, src, width, 0, "aclrtMemcpy2dAsync", height, dpitch, spitch};
  Status status = check_rows(copy.call, copy, kind, ACL_MEMCPY_DEVICE_TO_DEVICE);
  if (status.ok()) status = check_copy(copy.call, copy, copy.written_span(), kind);
  if (status.ok()) status = enqueue(copy.call, copy, stream);
  return status.code();
}

aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                          size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                          size_t numAttrs, size_t* failIndex) {
  return run_batch("aclrtMemcpyBatch",
                   {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs},
                   failIndex, run_now)
      .code();
}

aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                               size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                               size_t numAttrs, size_t* failIndex, aclrtStream stream) {
  return run_batch("aclrtMemcpyBatchAsync",
                   {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs},
                   failIndex,
                   [&](const Transfer& copy) { return enqueue(copy.call, copy, stream); })
      .code();
}

// A hint: there is nothing to do on a CPU.
aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType, aclrtStream stream) {
  constexpr const char* call = "aclrtCmoAsync";
  const int type = static_cast<int>(cmoType);
  Status status = not_null(call, "src", src);
  if (status.ok() && (type < ACL_RT_CMO_TYPE_PREFETCH || type > ACL_RT_CMO_TYPE_FLUSH)) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call,
                  "cmoType must be in [0, 3], but got %d", type);
  }
  if (status.ok() && size == 0) {
    status = fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, call, "size must be at least 1");
  }
  if (status.ok()) status = check_range(call, "src", src, size);
  PinnedStream own;
  if (status.ok()) status = find_working_stream(call, stream, &own);
  return status.code();
}
