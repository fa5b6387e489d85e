// SPDX-License-Identifier: Apache-2.0
// aclrtRandomNumAsync: random numbers by Philox4x32-10 (Salmon et al., SC 2011). The counter is the
// 128-bit offset in device memory, read before and advanced by the blocks that were used.
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

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

constexpr const char* kRandomCall = "aclrtRandomNumAsync";
constexpr size_t kCounterBytes = 16;

class Philox {
 public:
  Philox(uint64_t seed, const uint64_t (&counter)[2])
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{counter[0], counter[1]} {}

  uint32_t next() {
    if (used_ == 4) {
      block();
      used_ = 0;
    }
    return values_[used_++];
  }
  // In [0, 1), 24 bits.
  double uniform() { return (next() >> 8) * 0x1p-24; }
  // Box and Muller, of two numbers in (0, 1].
  double normal() {
    const double u = (next() + 1.0) * 0x1p-32, v = next() * 0x1p-32;
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
  }
  const uint64_t (&counter() const)[2] { return counter_; }

 private:
  void block() {
    constexpr uint32_t kFirst = 0xD2511F53u, kSecond = 0xCD9E8D57u;
    uint32_t x[4] = {static_cast<uint32_t>(counter_[0]), static_cast<uint32_t>(counter_[0] >> 32),
                     static_cast<uint32_t>(counter_[1]), static_cast<uint32_t>(counter_[1] >> 32)};
    uint32_t key[2] = {key_[0], key_[1]};
    for (int round = 0; round < 10; ++round) {
      const uint64_t a = uint64_t{kFirst} * x[0], b = uint64_t{kSecond} * x[2];
      const uint32_t mixed[4] = {
          static_cast<uint32_t>(b >> 32) ^ x[1] ^ key[0], static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ x[3] ^ key[1], static_cast<uint32_t>(a)};
      std::memcpy(x, mixed, sizeof x);
      key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
    }
    std::memcpy(values_, x, sizeof values_);
    if (++counter_[0] == 0) ++counter_[1];
  }

  uint32_t key_[2];
  uint64_t counter_[2];
  uint32_t values_[4] = {};
  int used_ = 4;
};

// A parameter: its bytes, or those at a device address, which are read when the task runs.
template <class T>
T read_parameter(const aclrtRandomParaInfo& given) {
  T value{};
  const void* from = given.valueOrAddr;
  if (given.isAddr != 0) {
    const void* address;
    std::memcpy(&address, given.valueOrAddr, sizeof address);
    from = reachable(address);
  }
  std::memcpy(&value, from, sizeof value);
  return value;
}

double real_parameter(const aclrtRandomParaInfo& given, int dtype) {
  switch (dtype) {
    case ACL_FLOAT16: return from_fp16(read_parameter<uint16_t>(given));
    case ACL_BF16: return from_bf16(read_parameter<uint16_t>(given));
    case ACL_INT32: return read_parameter<int32_t>(given);
    case ACL_UINT32: return read_parameter<uint32_t>(given);
    case ACL_INT64: return static_cast<double>(read_parameter<int64_t>(given));
    case ACL_UINT64: return static_cast<double>(read_parameter<uint64_t>(given));
    default: return read_parameter<float>(given);
  }
}

size_t width_of(int dtype) {
  switch (dtype) {
    case ACL_FLOAT16:
    case ACL_BF16: return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32: return 4;
    case ACL_INT64:
    case ACL_UINT64: return 8;
    default: return 0;
  }
}

void store(char* place, int dtype, double value) {
  const auto put = [place](auto converted) { std::memcpy(place, &converted, sizeof converted); };
  switch (dtype) {
    case ACL_FLOAT16: return put(to_fp16(static_cast<float>(value)));
    case ACL_BF16: return put(to_bf16(static_cast<float>(value)));
    case ACL_INT32: return put(static_cast<int32_t>(value));
    case ACL_UINT32: return put(static_cast<uint32_t>(value));
    case ACL_INT64: return put(static_cast<int64_t>(value));
    case ACL_UINT64: return put(static_cast<uint64_t>(value));
    default: return put(static_cast<float>(value));
  }
}

bool is_integer(int dtype) {
  return dtype != ACL_FLOAT && dtype != ACL_FLOAT16 && dtype != ACL_BF16;
}

struct Random {
  static constexpr const char* kCall = kRandomCall;
  aclrtRandomNumTaskInfo given;
  uint64_t count;  // of elements, where it was known at the call

  // Bit i of the mask is 1 where element i is kept, with probability 1 - ratio.
  void fill_mask(Philox& source, char* result) const {
    const double ratio = real_parameter(
        given.randomNumFuncParaInfo.paramInfo.dropoutBitmaskInfo.dropoutRation, given.dataType);
    for (uint64_t i = 0; i < count; i += 8) {
      int byte = 0;
      for (uint64_t bit = 0; bit < 8 && i + bit < count; ++bit)
        byte |= (source.uniform() >= ratio) << bit;
      result[i / 8] = static_cast<char>(byte);
    }
  }

  void fill(Philox& source, char* result, int kind) const {
    const aclrtUniformDisInfo& both = given.randomNumFuncParaInfo.paramInfo.uniformDisInfo;
    const double first = real_parameter(both.min, given.dataType);
    const double second = real_parameter(both.max, given.dataType);
    const size_t width = width_of(given.dataType);
    for (uint64_t i = 0; i < count; ++i) {
      double value;
      if (kind == ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS) {
        value = first + (second - first) * source.uniform();
        if (is_integer(given.dataType)) value = std::floor(value);
      } else {
        double z = source.normal();
        while (kind == ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS && std::fabs(z) > 2)
          z = source.normal();
        value = first + second * z;
      }
      store(result + i * width, given.dataType, value);
    }
  }

  void observe(const Stream& stream) const {
    const bool mask =
        given.randomNumFuncParaInfo.funcType == ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK;
    const size_t bytes = mask ? (count + 7) / 8 : count * width_of(given.dataType);
    const Range ranges[] = {{"randomResultAddr", given.randomResultAddr, bytes, true},
                            {"randomCounterAddr", given.randomCounterAddr, kCounterBytes, true}};
    observer->touches(kRandomCall, ranges, 2, &stream);
  }
  void run() const {
    const Work work(kRandomCall);
    const DefaultArithmetic arithmetic;
    auto* counter = static_cast<char*>(reachable(given.randomCounterAddr));
    uint64_t offset[2];
    std::memcpy(offset, counter, sizeof offset);
    Philox source(read_parameter<uint64_t>(given.randomSeed), offset);
    auto* result = static_cast<char*>(reachable(given.randomResultAddr));
    const int kind = given.randomNumFuncParaInfo.funcType;
    if (kind == ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK) {
      fill_mask(source, result);
    } else {
      fill(source, result, kind);
    }
    std::memcpy(counter, source.counter(), kCounterBytes);
  }
};

// The address of a parameter in device memory, if it has one.
Status check_parameter(const char* name, const aclrtRandomParaInfo& given) {
  if (given.isAddr == 0) return {};
  const void* address;
  std::memcpy(&address, given.valueOrAddr, sizeof address);
  if (Status null = not_null(kRandomCall, name, address, ObjectKind::device_memory); !null.ok())
    return null;
  return check_known_range(kRandomCall, name, address, sizeof(uint64_t));
}

Status check_task(const aclrtRandomNumTaskInfo& given, uint64_t count) {
  const int kind = given.randomNumFuncParaInfo.funcType, dtype = given.dataType;
  if (kind < 0 || kind > ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, kRandomCall,
                "funcType must be in [0, 3], but got %d", kind);
  }
  const bool mask = kind == ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK;
  const size_t width = width_of(dtype);
  const bool normal = kind >= ACL_RT_RANDOM_NUM_FUNC_TYPE_NORMAL_DIS;
  if (width == 0 || ((mask || normal) && is_integer(dtype))) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_dtype, kRandomCall,
                "dataType must be FLOAT, FLOAT16, BF16 or, for uniform numbers, an integer of 32 "
                "or 64 bits, but got %d",
                dtype);
  }
  const auto& parameters = given.randomNumFuncParaInfo.paramInfo.uniformDisInfo;
  Status status = check_parameter("the first parameter", parameters.min);
  if (status.ok() && !mask) status = check_parameter("the second parameter", parameters.max);
  if (status.ok()) status = check_parameter("randomSeed", given.randomSeed);
  if (status.ok()) status = not_null(kRandomCall, "randomResultAddr", given.randomResultAddr);
  if (status.ok()) status = not_null(kRandomCall, "randomCounterAddr", given.randomCounterAddr);
  if (!status.ok()) return status;
  if (count == 0 || count > SIZE_MAX / 16) {
    return fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, kRandomCall,
                "randomNum must be at least 1 and fit the memory, but got %llu",
                static_cast<unsigned long long>(count));
  }
  status = check_known_range(kRandomCall, "randomResultAddr", given.randomResultAddr,
                             mask ? (count + 7) / 8 : count * width);
  if (status.ok())
    status =
        check_known_range(kRandomCall, "randomCounterAddr", given.randomCounterAddr, kCounterBytes);
  return status;
}

}  // namespace

aclError aclrtRandomNumAsync(const aclrtRandomNumTaskInfo* taskInfo, const aclrtStream stream,
                             void* reserve) {
  return guarded(kRandomCall, ACL_ERROR_RT_MEMORY_ALLOCATION, [&] {
    Status status = not_null(kRandomCall, "taskInfo", taskInfo);
    if (status.ok() && reserve != nullptr)
      status =
          fail(ACL_ERROR_INVALID_PARAM, Reason::wrong_value, kRandomCall, "reserve must be NULL");
    if (status.ok() && taskInfo->randomNum.isAddr != 0)
      status = fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Reason::not_supported, kRandomCall,
                    "randomNum must be a value: a number in device memory is not supported");
    if (!status.ok()) return status.code();
    const auto count = read_parameter<uint64_t>(taskInfo->randomNum);
    status = check_task(*taskInfo, count);
    PinnedStream own;
    if (status.ok()) status = find_working_stream(kRandomCall, stream, &own);
    if (!status.ok()) return status.code();
    auto job = std::make_unique<Random>(Random{*taskInfo, count});
    observe_job(*own, *job);
    submit_job(*own, std::move(job), count <= 256);
    return ACL_SUCCESS;
  });
}
