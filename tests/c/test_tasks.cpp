// SPDX-License-Identifier: Apache-2.0
// Reductions, random numbers, copies of rows and batches.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "check.h"

namespace {

int an_object = 0;
void* const foreign = &an_object;

template <class T>
T* device(size_t count) {
  void* p = nullptr;
  CHECK_EQ(aclrtMalloc(&p, count * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST), 0);
  CHECK_EQ(aclrtMemset(p, count * sizeof(T), 0, count * sizeof(T)), 0);
  return static_cast<T*>(p);
}

constexpr auto kSum = ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM, kMax = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX,
               kMin = ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN;

template <class T>
void reduces(aclDataType dtype, std::vector<T> a, std::vector<T> b, aclrtReduceKind kind,
             std::vector<T> want) {
  const size_t bytes = a.size() * sizeof(T);
  T *dst = device<T>(a.size()), *src = device<T>(a.size());
  std::memcpy(dst, a.data(), bytes);
  std::memcpy(src, b.data(), bytes);
  CHECK_EQ(aclrtReduceAsync(dst, src, bytes, kind, dtype, nullptr, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  for (size_t i = 0; i < a.size(); ++i) CHECK_EQ(+dst[i], +want[i]);
  CHECK_EQ(aclrtFree(dst), 0);
  CHECK_EQ(aclrtFree(src), 0);
}

void reductions() {
  reduces<float>(ACL_FLOAT, {1, -2, 3}, {0.5f, 4, -3}, kSum, {1.5f, 2, 0});
  reduces<float>(ACL_FLOAT, {1, -2, 3}, {0.5f, 4, -3}, kMax, {1, 4, 3});
  reduces<float>(ACL_FLOAT, {1, -2, 3}, {0.5f, 4, -3}, kMin, {0.5f, -2, -3});
  reduces<int8_t>(ACL_INT8, {100, -7}, {100, 3}, kSum, {-56, -4});
  reduces<int16_t>(ACL_INT16, {5, -7}, {6, -8}, kMax, {6, -7});
  reduces<int32_t>(ACL_INT32, {INT32_MAX}, {1}, kSum, {INT32_MIN});
  reduces<uint32_t>(ACL_UINT32, {5, 0xffffffffu}, {6, 1}, kMin, {5, 1});
  // FLOAT16: 1 + 2^-11 is half way to the next number and rounds to even; 65504 + 65504 overflows.
  reduces<uint16_t>(ACL_FLOAT16, {0x3c00, 0x7bff, 0x0001, 0x8001}, {0x1000, 0x7bff, 0x0001, 0x0001},
                    kSum, {0x3c00, 0x7c00, 0x0002, 0x0000});
  reduces<uint16_t>(ACL_BF16, {0x3f80, 0xbf80}, {0x3b80, 0x3f80}, kSum, {0x3f80, 0x0000});
  reduces<uint16_t>(ACL_FLOAT16, {0x3c00, 0x7e00}, {0xc000, 0x3c00}, kMax, {0x3c00, 0x7e00});
  std::vector<float> many(100'000, 1.0f), two(many.size(), 2.0f);
  reduces<float>(ACL_FLOAT, many, many, kSum, two);  // on the worker

  float *dst = device<float>(4), *src = device<float>(4);
  const auto reduce = [&](void* a, void* b, uint64_t count, int kind, int dtype,
                          aclrtStream stream = nullptr, void* reserve = nullptr) {
    return aclrtReduceAsync(a, b, count, static_cast<aclrtReduceKind>(kind),
                            static_cast<aclDataType>(dtype), stream, reserve);
  };
  CHECK_FAILS(reduce(nullptr, src, 16, 10, 0), 100000, "aclrtReduceAsync: dst must not be NULL");
  CHECK_EQ(reduce(dst, nullptr, 16, 10, 0), 100000);
  CHECK_FAILS(reduce(dst, src, 16, 10, 0, nullptr, dst), 100000, "reserve must be NULL");
  CHECK_FAILS(reduce(dst, src, 16, 13, 0), 207000, "kind must be 10 (sum), 11 (max) or 12 (min)");
  CHECK_FAILS(reduce(dst, src, 16, 10, 9), 207000, "FLOAT16 or BF16, but got 9");
  CHECK_FAILS(reduce(dst, src, 15, 10, 0), 100000, "multiple of 4 above 0, but got 15");
  CHECK_EQ(reduce(dst, src, 0, 10, 0), 100000);
  CHECK_FAILS(reduce(dst, src, 1024, 10, 0), 107000, "the bytes reserved from dst");
  CHECK_FAILS(reduce(&an_object, src, 4, 10, 0), 107000, "is not memory of acl");
  CHECK_EQ(reduce(dst, src, 16, 10, 0, foreign), 107017);
  CHECK_EQ(aclrtFree(src), 0);
  CHECK_EQ(reduce(dst, src, 16, 10, 0), 107000);
  CHECK_EQ(aclrtFree(dst), 0);
}

template <class T>
void set(aclrtRandomParaInfo* parameter, T value) {
  *parameter = {};
  parameter->size = sizeof value;
  std::memcpy(parameter->valueOrAddr, &value, sizeof value);
}

struct RandomCall {
  aclrtRandomNumTaskInfo info = {};
  uint64_t* counter = device<uint64_t>(2);
  float* result = device<float>(kCount);
  static constexpr uint64_t kCount = 20'000;

  explicit RandomCall(aclrtRandomNumFuncType kind, float first, float second) {
    info.dataType = ACL_FLOAT;
    info.randomNumFuncParaInfo.funcType = kind;
    set(&info.randomNumFuncParaInfo.paramInfo.normalDisInfo.mean, first);
    set(&info.randomNumFuncParaInfo.paramInfo.normalDisInfo.stddev, second);
    info.randomResultAddr = result;
    info.randomCounterAddr = counter;
    set(&info.randomSeed, uint64_t{7});
    set(&info.randomNum, kCount);
  }
  ~RandomCall() {
    CHECK_EQ(aclrtFree(counter), 0);
    CHECK_EQ(aclrtFree(result), 0);
  }
  aclError run(aclrtStream stream = nullptr, void* reserve = nullptr) const {
    const aclError code = aclrtRandomNumAsync(&info, stream, reserve);
    if (code == 0) CHECK_EQ(aclrtSynchronizeStream(stream), 0);
    return code;
  }
  double mean() const {
    double sum = 0;
    for (uint64_t i = 0; i < kCount; ++i) sum += result[i];
    return sum / kCount;
  }
  double deviation() const {
    double sum = 0;
    for (uint64_t i = 0; i < kCount; ++i) sum += (result[i] - mean()) * (result[i] - mean());
    return std::sqrt(sum / kCount);
  }
};

void random_numbers() {
  {
    RandomCall uniform(ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS, -1, 3);
    CHECK_EQ(uniform.run(), 0);
    CHECK(std::fabs(uniform.mean() - 1) < 0.05);
    for (uint64_t i = 0; i < RandomCall::kCount; ++i)
      CHECK(uniform.result[i] >= -1 && uniform.result[i] < 3);
    const std::vector<float> first(uniform.result, uniform.result + 100);
    CHECK(uniform.counter[0] > 0);
    CHECK_EQ(uniform.run(), 0);  // goes on from the counter
    CHECK(std::memcmp(first.data(), uniform.result, 400) != 0);
    uniform.counter[0] = 0;
    CHECK_EQ(uniform.run(), 0);  // the same seed and counter: the same numbers
    CHECK(std::memcmp(first.data(), uniform.result, 400) == 0);
    set(&uniform.info.randomSeed, uint64_t{8});
    uniform.counter[0] = 0;
    CHECK_EQ(uniform.run(), 0);
    CHECK(std::memcmp(first.data(), uniform.result, 400) != 0);
  }
  {
    RandomCall normal(ACL_RT_RANDOM_NUM_FUNC_TYPE_NORMAL_DIS, 2, 3);
    CHECK_EQ(normal.run(), 0);
    CHECK(std::fabs(normal.mean() - 2) < 0.1);
    CHECK(std::fabs(normal.deviation() - 3) < 0.1);
    normal.info.randomNumFuncParaInfo.funcType = ACL_RT_RANDOM_NUM_FUNC_TYPE_TRUNCATED_NORMAL_DIS;
    CHECK_EQ(normal.run(), 0);
    for (uint64_t i = 0; i < RandomCall::kCount; ++i)
      CHECK(normal.result[i] >= -4 && normal.result[i] <= 8);
    // The mean in device memory.
    float* mean = device<float>(2);
    mean[0] = 100;
    aclrtRandomParaInfo* given = &normal.info.randomNumFuncParaInfo.paramInfo.normalDisInfo.mean;
    set(given, mean);
    given->isAddr = 1;
    CHECK_EQ(normal.run(), 0);
    CHECK(std::fabs(normal.mean() - 100) < 0.5);
    CHECK_EQ(aclrtFree(mean), 0);
  }
  {
    RandomCall mask(ACL_RT_RANDOM_NUM_FUNC_TYPE_DROPOUT_BITMASK, 0.25f, 0);
    CHECK_EQ(mask.run(), 0);
    int kept = 0;
    const auto* bytes = reinterpret_cast<const unsigned char*>(mask.result);
    for (uint64_t i = 0; i < RandomCall::kCount; ++i) kept += bytes[i / 8] >> i % 8 & 1;
    CHECK(std::abs(kept - 15'000) < 300);
  }
  RandomCall wrong(ACL_RT_RANDOM_NUM_FUNC_TYPE_UNIFORM_DIS, 0, 1);
  CHECK_FAILS(aclrtRandomNumAsync(nullptr, nullptr, nullptr), 100000, "taskInfo must not be NULL");
  CHECK_FAILS(wrong.run(nullptr, &wrong), 100000, "reserve must be NULL");
  CHECK_EQ(wrong.run(foreign), 107017);
  const auto refused = [&](auto change, int code, const char* sentence) {
    const aclrtRandomNumTaskInfo kept = wrong.info;
    change(wrong.info);
    CHECK_FAILS(wrong.run(), code, sentence);
    wrong.info = kept;
  };
  using Info = aclrtRandomNumTaskInfo;
  refused([](Info& i) { i.randomResultAddr = nullptr; }, 100000, "randomResultAddr must not be");
  refused([](Info& i) { i.randomCounterAddr = nullptr; }, 100000, "randomCounterAddr must not be");
  refused([](Info& i) { i.dataType = ACL_BOOL; }, 100000, "dataType must be FLOAT");
  refused(
      [](Info& i) { i.randomNumFuncParaInfo.funcType = static_cast<aclrtRandomNumFuncType>(4); },
      100000, "funcType must be in [0, 3], but got 4");
  refused([](Info& i) { set(&i.randomNum, uint64_t{0}); }, 100000, "randomNum must be at least 1");
  refused([](Info& i) { set(&i.randomNum, UINT64_MAX); }, 100000, "randomNum must be at least 1");
  refused([](Info& i) { set(&i.randomNum, uint64_t{1} << 30); }, 107000, "the bytes reserved from");
  refused([](Info& i) { i.randomNum.isAddr = 1; }, 207000, "randomNum must be a value");
  refused([](Info& i) { i.randomSeed = {1, {}, 8, {}}; }, 100000, "randomSeed must not be NULL");
}

void rows() {
  constexpr auto up = ACL_MEMCPY_HOST_TO_DEVICE, down = ACL_MEMCPY_DEVICE_TO_HOST,
                 within = ACL_MEMCPY_DEVICE_TO_DEVICE;
  char host[4][8], back[4][5] = {};
  for (int i = 0; i < 32; ++i) host[i / 8][i % 8] = static_cast<char>(i);
  char *p = device<char>(64), *q = device<char>(64);
  CHECK_EQ(aclrtMemcpy2d(p, 16, host, 8, 5, 4, up), 0);
  CHECK_EQ(p[16 + 4], 12);
  CHECK_EQ(p[16 + 5], 0);
  CHECK_EQ(aclrtMemcpy2dAsync(q, 16, p, 16, 5, 4, within, nullptr), 0);
  CHECK_EQ(aclrtMemcpy2dAsync(back, 5, q, 16, 5, 4, down, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  for (int row = 0; row < 4; ++row) CHECK(std::memcmp(back[row], host[row], 5) == 0);
  CHECK_FAILS(aclrtMemcpy2d(nullptr, 16, host, 8, 5, 4, up), 100000, "dst must not be NULL");
  CHECK_EQ(aclrtMemcpy2d(p, 16, nullptr, 8, 5, 4, up), 100000);
  CHECK_FAILS(aclrtMemcpy2d(p, 4, host, 8, 5, 4, up), 100000, "must be in [width");
  CHECK_FAILS(aclrtMemcpy2d(p, 16, host, 8, 0, 4, up), 100000, "width must be in [1");
  CHECK_FAILS(aclrtMemcpy2d(p, 16, host, 8, 5, 4, within), 100000, "kind must be in [1, 2]");
  CHECK_FAILS(aclrtMemcpy2d(p, 16, host, 8, 5, 8, up), 107000, "the bytes reserved from dst");
  CHECK_EQ(aclrtMemcpy2d(p, SIZE_MAX, host, 8, 5, 2, up), 100000);
  CHECK_EQ(aclrtMemcpy2dAsync(q, 16, p, 16, 5, 4, static_cast<aclrtMemcpyKind>(0), nullptr),
           100000);
  CHECK_EQ(aclrtMemcpy2dAsync(q, 16, p, 16, 5, 4, within, foreign), 107017);
  CHECK_EQ(aclrtMemcpyAsyncWithCondition(q, 64, p, 16, within, nullptr), 0);
  CHECK_EQ(aclrtMemcpyAsyncWithCondition(q, 8, p, 16, within, nullptr), 107000);
  CHECK_EQ(aclrtCmoAsync(p, 64, ACL_RT_CMO_TYPE_PREFETCH, nullptr), 0);
  CHECK_EQ(aclrtCmoAsync(nullptr, 64, ACL_RT_CMO_TYPE_PREFETCH, nullptr), 100000);
  CHECK_FAILS(aclrtCmoAsync(p, 64, static_cast<aclrtCmoType>(4), nullptr), 100000, "[0, 3]");
  CHECK_EQ(aclrtCmoAsync(p, 0, ACL_RT_CMO_TYPE_PREFETCH, nullptr), 100000);
  CHECK_EQ(aclrtCmoAsync(p, 6400, ACL_RT_CMO_TYPE_PREFETCH, nullptr), 107000);
  CHECK_EQ(aclrtCmoAsync(p, 64, ACL_RT_CMO_TYPE_PREFETCH, foreign), 107017);
  CHECK_EQ(aclrtFree(p), 0);
  CHECK_EQ(aclrtFree(q), 0);
}

void batches() {
  char *p = device<char>(64), *q = device<char>(64);
  char one[4] = "abc", two[8] = "defghij", back[12] = {};
  aclrtMemcpyBatchAttr up = {}, down = {};
  up.srcLoc = {0, ACL_MEM_LOCATION_TYPE_HOST}, up.dstLoc = {0, ACL_MEM_LOCATION_TYPE_DEVICE};
  down.srcLoc = up.dstLoc, down.dstLoc = up.srcLoc;
  void *to[] = {p, q}, *from[] = {one, two}, *home[] = {back, back + 4};
  size_t limits[] = {64, 64}, sizes[] = {4, 8}, first[] = {0}, both[] = {0, 1}, failed = 5;
  CHECK_EQ(aclrtMemcpyBatch(to, limits, from, sizes, 2, &up, first, 1, &failed), 0);
  CHECK_EQ(failed, SIZE_MAX);
  CHECK_EQ(std::string(q), "defghij");
  aclrtMemcpyBatchAttr twice[] = {down, down}, mixed[] = {up, down};
  CHECK_EQ(aclrtMemcpyBatchAsync(home, limits, to, sizes, 2, twice, both, 2, &failed, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  CHECK(std::memcmp(back, "abc\0defghij", 12) == 0);
  size_t small[] = {64, 7};
  CHECK_FAILS(aclrtMemcpyBatch(to, small, from, sizes, 2, &up, first, 1, &failed), 100000,
              "copy 1 of the batch is refused: 8 bytes");
  CHECK_EQ(failed, size_t{1});
  const auto batch = [&](void** dsts, size_t* room, void** srcs, size_t* counts, size_t count,
                         aclrtMemcpyBatchAttr* attributes, size_t* indexes, size_t number) {
    return aclrtMemcpyBatch(dsts, room, srcs, counts, count, attributes, indexes, number, &failed);
  };
  CHECK_EQ(batch(nullptr, limits, from, sizes, 2, &up, first, 1), 100000);
  CHECK_EQ(batch(to, nullptr, from, sizes, 2, &up, first, 1), 100000);
  CHECK_EQ(batch(to, limits, nullptr, sizes, 2, &up, first, 1), 100000);
  CHECK_EQ(batch(to, limits, from, nullptr, 2, &up, first, 1), 100000);
  CHECK_EQ(batch(to, limits, from, sizes, 2, nullptr, first, 1), 100000);
  CHECK_EQ(batch(to, limits, from, sizes, 2, &up, nullptr, 1), 100000);
  CHECK_EQ(batch(to, limits, from, sizes, 0, &up, first, 1), 100000);
  CHECK_FAILS(batch(to, limits, from, sizes, 2, mixed, both, 2), 100000, "all copies must go");
  size_t descending[] = {0, 0};
  CHECK_FAILS(batch(to, limits, from, sizes, 2, twice, descending, 2), 100000, "must begin with 0");
  CHECK_EQ(aclrtMemcpyBatch(to, limits, from, sizes, 2, &up, first, 1, nullptr), 100000);
  CHECK_EQ(aclrtMemcpyBatchAsync(to, limits, from, sizes, 2, &up, first, 1, &failed, foreign),
           107017);
  CHECK_EQ(failed, size_t{0});
  CHECK_EQ(aclrtFree(p), 0);
  CHECK_EQ(aclrtFree(q), 0);
}

void overflow() {
  uint32_t* status = device<uint32_t>(16);
  std::memset(status, 0xff, 64);
  CHECK_EQ(aclrtGetOverflowStatus(status, 64, nullptr), 0);
  CHECK_EQ(aclrtResetOverflowStatus(nullptr), 0);
  CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  for (int i = 0; i < 16; ++i) CHECK_EQ(status[i], 0u);
  CHECK_EQ(aclrtGetOverflowStatus(nullptr, 64, nullptr), 100000);
  CHECK_FAILS(aclrtGetOverflowStatus(status, 32, nullptr), 100000, "outputSize must be 64");
  CHECK_EQ(aclrtGetOverflowStatus(status, 64, foreign), 107017);
  CHECK_EQ(aclrtResetOverflowStatus(foreign), 107017);
  aclrtFloatOverflowMode mode = ACL_RT_OVERFLOW_MODE_UNDEF;
  CHECK_EQ(aclrtGetDeviceSatMode(&mode), 0);
  CHECK_EQ(mode, ACL_RT_OVERFLOW_MODE_INFNAN);
  CHECK_EQ(aclrtGetDeviceSatMode(nullptr), 100000);
  CHECK_EQ(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_INFNAN), 0);
  CHECK_FAILS(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_SATURATION), 207000, "do not saturate");
  CHECK_FAILS(aclrtSetDeviceSatMode(ACL_RT_OVERFLOW_MODE_UNDEF), 100000, "mode must be 0");
  CHECK_EQ(aclrtFree(status), 0);
}

}  // namespace

int main() {
  CHECK_EQ(aclrtSetDevice(0), 0);
  reductions();
  random_numbers();
  rows();
  batches();
  overflow();
  CHECK_EQ(aclrtResetDevice(0), 0);
  return check_result();
}
