// SPDX-License-Identifier: Apache-2.0
// One call of a C function, and the comparison of what it wrote with numbers that the test computed
// itself, in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

using Numbers = std::vector<double>;
using Dims = std::vector<int64_t>;

inline int failures = 0;
inline bool distorted = false;  // if set, results are changed before they are compared
inline std::mt19937 generator;

inline int64_t product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Numbers that every dtype here holds exactly: multiples of 1/16.
inline Numbers random_numbers(int64_t count, double low = -2, double high = 2) {
  std::uniform_int_distribution<int> sixteenths(static_cast<int>(low * 16),
                                                static_cast<int>(high * 16));
  Numbers made(static_cast<size_t>(count));
  for (double& x : made) x = sixteenths(generator) / 16.0;
  return made;
}

inline void must(bool good, const std::string& what) {
  if (good) return;
  std::printf("%s: %s\n", what.c_str(), aclGetRecentErrMsg());
  std::exit(1);
}

inline double epsilon(aclDataType dtype) {
  switch (dtype) {
    case ACL_FLOAT: return 0x1p-23;
    case ACL_DOUBLE: return 0x1p-52;
    case ACL_FLOAT16: return 0x1p-10;
    case ACL_BF16: return 0x1p-7;
    default: return 0;
  }
}

// Device memory and its view.
class Array {
 public:
  Array(const Dims& shape, const Numbers& values, aclDataType dtype = ACL_FLOAT)
      : Array(shape, shape, {}, 0, values, dtype) {}
  explicit Array(const Dims& shape, aclDataType dtype = ACL_FLOAT)
      : Array(shape, Numbers(static_cast<size_t>(product(shape)), 99), dtype) {}
  // A view of a storage with these values.
  Array(const Dims& storage, const Dims& shape, const Dims& strides, int64_t offset,
        const Numbers& values, aclDataType dtype)
      : dtype_(dtype), count_(product(storage)) {
    must(aclrtMalloc(&memory_, bytes() + 1, ACL_MEM_MALLOC_HUGE_FIRST) == 0, "aclrtMalloc");
    must(reinterpret_cast<uintptr_t>(memory_) % 128 == 0, "alignment of aclrtMalloc");
    write(values);
    tensor_ = aclCreateTensor(shape.data(), shape.size(), dtype,
                              strides.empty() ? nullptr : strides.data(), offset, ACL_FORMAT_ND,
                              storage.data(), storage.size(), memory_);
    must(tensor_ != nullptr, "aclCreateTensor");
  }
  Array(const Array&) = delete;
  ~Array() {
    if (owned_) aclDestroyTensor(tensor_);
    aclrtFree(memory_);
  }

  operator aclTensor*() const { return tensor_; }
  aclTensor* give() {  // to a list, which destroys it
    owned_ = false;
    return tensor_;
  }
  aclDataType dtype() const { return dtype_; }

  Numbers read() const {
    std::vector<char> raw(bytes());
    must(aclrtMemcpy(raw.data(), raw.size(), memory_, raw.size(), ACL_MEMCPY_DEVICE_TO_HOST) == 0,
         "aclrtMemcpy");
    Numbers made(static_cast<size_t>(count_));
    for (size_t i = 0; i < made.size(); ++i) made[i] = load(raw.data() + i * width());
    return made;
  }

 private:
  size_t width() const { return dtype_ == ACL_INT4 ? 1 : aclDataTypeSize(dtype_); }
  size_t bytes() const { return static_cast<size_t>(count_) * width(); }

  void write(const Numbers& values) {
    std::vector<char> raw(bytes());
    for (size_t i = 0; i < values.size() && (i + 1) * width() <= raw.size(); ++i)
      store(values[i], raw.data() + i * width());
    must(raw.empty() || aclrtMemcpy(memory_, raw.size(), raw.data(), raw.size(),
                                    ACL_MEMCPY_HOST_TO_DEVICE) == 0,
         "aclrtMemcpy");
  }
  template <class T>
  static void put(T value, char* to) {
    std::memcpy(to, &value, sizeof value);
  }
  template <class T>
  static T get(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  void store(double x, char* to) const {
    switch (dtype_) {
      case ACL_FLOAT: return put(static_cast<float>(x), to);
      case ACL_DOUBLE: return put(x, to);
      case ACL_FLOAT16: return put(aclFloatToFloat16(static_cast<float>(x)), to);
      case ACL_BF16: {
        const auto wide = static_cast<float>(x);
        uint32_t bits;
        std::memcpy(&bits, &wide, sizeof bits);
        return put(static_cast<uint16_t>(bits >> 16), to);  // exact for what is stored here
      }
      case ACL_INT32: return put(static_cast<int32_t>(x), to);
      case ACL_INT64: return put(static_cast<int64_t>(x), to);
      case ACL_INT4: return put(static_cast<uint8_t>(x), to);  // a byte, two elements
      default: return put(static_cast<int8_t>(x), to);         // INT8, UINT8 and BOOL
    }
  }
  double load(const char* from) const {
    switch (dtype_) {
      case ACL_FLOAT: return get<float>(from);
      case ACL_DOUBLE: return get<double>(from);
      case ACL_FLOAT16: return aclFloat16ToFloat(get<uint16_t>(from));
      case ACL_BF16: {
        const uint32_t bits = uint32_t{get<uint16_t>(from)} << 16;
        float wide;
        std::memcpy(&wide, &bits, sizeof wide);
        return wide;
      }
      case ACL_INT32: return get<int32_t>(from);
      case ACL_INT64: return static_cast<double>(get<int64_t>(from));
      default: return get<int8_t>(from);
    }
  }

  aclDataType dtype_;
  int64_t count_;
  void* memory_ = nullptr;
  aclTensor* tensor_ = nullptr;
  bool owned_ = true;
};

// Scalars and lists of integers that end with the call they are an argument of.
class Scalar {
 public:
  Scalar(float value) : scalar_(aclCreateScalar(&value, ACL_FLOAT)) {}
  Scalar(const Scalar&) = delete;
  ~Scalar() { aclDestroyScalar(scalar_); }
  operator aclScalar*() const { return scalar_; }

 private:
  aclScalar* scalar_;
};

class Ints {
 public:
  Ints(std::initializer_list<int64_t> values)
      : array_(aclCreateIntArray(values.begin(), values.size())) {}
  Ints(const Ints&) = delete;
  ~Ints() { aclDestroyIntArray(array_); }
  operator aclIntArray*() const { return array_; }

 private:
  aclIntArray* array_;
};

inline aclrtStream& stream() {
  static aclrtStream own = nullptr;
  return own;
}

template <class Plan, class Run>
void run(const char* name, Plan plan, Run phase2) {
  uint64_t size = 1;
  aclOpExecutor* executor = nullptr;
  must(plan(&size, &executor) == 0, std::string(name) + "GetWorkspaceSize");
  void* workspace = nullptr;
  if (size > 0) must(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST) == 0, "aclrtMalloc");
  must(phase2(workspace, size, executor, stream()) == 0, name);
  must(aclrtSynchronizeStream(stream()) == 0, "aclrtSynchronizeStream");
  if (workspace != nullptr) aclrtFree(workspace);
}

// CALL(Add, a, b, alpha, out): both phases.
#define CALL(op, ...)                                                      \
  run(                                                                     \
      "aclnn" #op,                                                         \
      [&](uint64_t* size_, aclOpExecutor** executor_) {                    \
        return aclnn##op##GetWorkspaceSize(__VA_ARGS__, size_, executor_); \
      },                                                                   \
      aclnn##op)

// What was written is what was expected, within so many units in the last place of `terms`, the
// absolute terms of a sum, or of the value itself.
inline void expect(const char* name, const Array& out, const Numbers& expected, double units = 4,
                   const Numbers& terms = {}) {
  Numbers got = out.read();
  for (size_t i = 0; distorted && i < got.size(); ++i)
    got[i] += 1 + (terms.empty() ? 0 : terms[i]) * epsilon(out.dtype()) * units + std::abs(got[i]);
  double worst = 0;
  bool good = got.size() == expected.size();
  for (size_t i = 0; good && i < got.size(); ++i) {
    if (std::isnan(expected[i]) ? std::isnan(got[i]) : got[i] == expected[i]) continue;
    const double size = std::max(std::abs(expected[i]), terms.empty() ? 0 : terms[i]);
    const double distance = std::abs(got[i] - expected[i]) / (epsilon(out.dtype()) * size);
    if (!(distance <= units)) {
      std::printf("%s: element %zu is %.9g, expected %.9g\n", name, i, got[i], expected[i]);
      good = false;
    }
    worst = std::max(worst, distance);
  }
  if (!good) ++failures;
  std::printf("%s %s %.2f %.0f\n", name, good ? "good" : "WRONG", worst, units);
}

// In the program's main(), in this order.
void elementwise();
void shapes();
void matrices();
void layers();
