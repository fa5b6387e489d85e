// SPDX-License-Identifier: Apache-2.0
// aclrtReduceAsync: dst[i] = dst[i] op src[i] as a task of a stream.
#include <cmath>
#include <cstring>
#include <memory>

#include "acl/acl_rt.h"
#include "core/runtime/work_listener.h"
#include "core/support/api_guard.h"
#include "core/support/arithmetic.h"
#include "core/support/half.h"
#include "core/support/observer.h"
#include "core/runtime/task.h"
#include "core/memory/transfer.h"

using namespace openaclnn;

namespace {

constexpr const char* kReduceCall = "aclrtReduceAsync";
constexpr size_t kBriefReduction = 16 << 10;

enum class Operation { sum, max, min };

template <class T>
T combine(Operation operation, T a, T b) {
  if constexpr (std::is_same_v<T, float>) {
    if (operation == Operation::sum) return a + b;
    if (std::isnan(a) || std::isnan(b)) return a + b;
  } else if (operation == Operation::sum) {
    using U = std::make_unsigned_t<T>;  // wraps around
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  }
  return (operation == Operation::max) == (a < b) ? b : a;
}

// Elements that are computed as they are.
template <class T>
void reduce_as(Operation operation, char* dst, const char* src, size_t bytes) {
  for (size_t i = 0; i < bytes; i += sizeof(T)) {
    T a, b;
    std::memcpy(&a, dst + i, sizeof a);
    std::memcpy(&b, src + i, sizeof b);
    a = combine(operation, a, b);
    std::memcpy(dst + i, &a, sizeof a);
  }
}

template <float (*kFrom)(uint16_t), uint16_t (*kTo)(float)>
void reduce_half(Operation operation, char* dst, const char* src, size_t bytes) {
  for (size_t i = 0; i < bytes; i += sizeof(uint16_t)) {
    uint16_t a, b;
    std::memcpy(&a, dst + i, sizeof a);
    std::memcpy(&b, src + i, sizeof b);
    a = kTo(combine(operation, kFrom(a), kFrom(b)));
    std::memcpy(dst + i, &a, sizeof a);
  }
}

struct Kernel {
  void (*run)(Operation operation, char* dst, const char* src, size_t bytes) = nullptr;
  size_t width = 0;
};

Kernel kernel_of(int dtype) {
  switch (dtype) {
    case ACL_INT8: return {reduce_as<int8_t>, 1};
    case ACL_INT16: return {reduce_as<int16_t>, 2};
    case ACL_INT32: return {reduce_as<int32_t>, 4};
    case ACL_UINT32: return {reduce_as<uint32_t>, 4};
    case ACL_FLOAT: return {reduce_as<float>, 4};
    case ACL_FLOAT16: return {reduce_half<from_fp16, to_fp16>, 2};
    case ACL_BF16: return {reduce_half<from_bf16, to_bf16>, 2};
    default: return {};
  }
}

struct Reduction {
  static constexpr const char* kCall = kReduceCall;
  Kernel kernel;
  Operation operation;
  void* dst;
  const void* src;
  size_t bytes;

  void observe(const Stream& stream) const {
    const Range ranges[] = {{"dst", dst, bytes, true}, {"src", src, bytes, false}};
    observer->touches(kReduceCall, ranges, 2, &stream);
  }
  void run() const {
    const Work work(kReduceCall);
    const DefaultArithmetic arithmetic;
    kernel.run(operation, static_cast<char*>(reachable(dst)),
               static_cast<const char*>(reachable(src)), bytes);
  }
};

Status check_arguments(const Reduction& given, int kind, int type, const void* reserve) {
  Status status = not_null(kReduceCall, "dst", given.dst, ObjectKind::device_memory);
  if (status.ok()) status = not_null(kReduceCall, "src", given.src, ObjectKind::device_memory);
  if (!status.ok()) return status;
  if (reserve != nullptr) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, kReduceCall, "reserve must be NULL");
  }
  if (kind < ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM || kind > ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, kReduceCall,
                "kind must be 10 (sum), 11 (max) or 12 (min), but got %d", kind);
  }
  if (given.kernel.run == nullptr) {
    return fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::wrong_dtype, kReduceCall,
                "type must be INT8, INT16, INT32, UINT32, FLOAT, FLOAT16 or BF16, but got %d",
                type);
  }
  if (given.bytes == 0 || given.bytes % given.kernel.width != 0) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, kReduceCall,
                "count is in bytes and must be a multiple of %zu above 0, but got %zu",
                given.kernel.width, given.bytes);
  }
  status = check_known_range(kReduceCall, "dst", given.dst, given.bytes);
  if (status.ok()) status = check_known_range(kReduceCall, "src", given.src, given.bytes);
  return status;
}

}  // namespace

aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count, aclrtReduceKind kind,
                          aclDataType type, aclrtStream stream, void* reserve) {
  return guarded(kReduceCall, ACL_ERROR_RT_MEMORY_ALLOCATION, [&] {
    const int chosen = static_cast<int>(kind);
    const auto operation = static_cast<Operation>(chosen - ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM);
    const Reduction given = {kernel_of(type), operation, dst, src, count};
    Status status = check_arguments(given, chosen, type, reserve);
    PinnedStream own;
    if (status.ok()) status = find_working_stream(kReduceCall, stream, &own);
    if (!status.ok()) return status.code();
    auto job = std::make_unique<Reduction>(given);
    observe_job(*own, *job);
    submit_job(*own, std::move(job), count <= kBriefReduction);
    return ACL_SUCCESS;
  });
}
