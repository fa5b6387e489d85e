// SPDX-License-Identifier: Apache-2.0
// GroupNormSwish and its gradient on memory that ends where the tensors end, contiguous and
// channels last: equal bits, known sums, and nothing for the sanitizers to find.
#include <pthread.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "aclnnop/aclnn_group_norm_swish.h"
#include "aclnnop/aclnn_group_norm_swish_grad.h"
#include "check.h"

namespace {

struct Shape {
  int64_t samples, channels, positions, groups;
  int64_t count() const { return samples * channels * positions; }
};

uint16_t to_bf16(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Values in memory of exactly their size.
class Memory {
 public:
  Memory(int64_t count, aclDataType dtype) : dtype_(dtype), bytes_(count * size()) {
    data_.reset(static_cast<unsigned char*>(std::malloc(static_cast<size_t>(bytes_))));
    std::memset(data_.get(), 0xff, static_cast<size_t>(bytes_));  // NaN
  }
  void set(int64_t i, float value) {
    const uint16_t half = to_bf16(value);
    dtype_ == ACL_FLOAT ? std::memcpy(at(i), &value, 4) : std::memcpy(at(i), &half, 2);
  }
  unsigned char* at(int64_t i) const { return data_.get() + i * size(); }
  int64_t size() const { return dtype_ == ACL_FLOAT ? 4 : 2; }

 private:
  struct Free {
    void operator()(unsigned char* data) const { std::free(data); }
  };
  aclDataType dtype_;
  int64_t bytes_;
  std::unique_ptr<unsigned char, Free> data_;
};

class Run {
 public:
  Run(const Shape& shape, aclDataType dtype, bool channels_last)
      : shape_(shape), dtype_(dtype), channels_last_(channels_last) {}

  ~Run() {
    for (const aclTensor* tensor : tensors_) CHECK_EQ(aclDestroyTensor(tensor), 0);
  }

  // Element (n, c, p) of a large tensor.
  int64_t place(int64_t n, int64_t c, int64_t p) const {
    const int64_t inner = channels_last_ ? p * shape_.channels + c : c * shape_.positions + p;
    return n * shape_.channels * shape_.positions + inner;
  }

  void run() {
    uint64_t size = 0;
    aclOpExecutor* executor = nullptr;
    fill();
    CHECK_EQ(
        aclnnGroupNormSwishGetWorkspaceSize(
            large(x), small(gamma, shape_.channels), small(beta, shape_.channels), shape_.groups,
            nullptr, 1e-5, true, 1.0, large(y), statistic(mean), statistic(rstd), &size, &executor),
        0);
    phase2(aclnnGroupNormSwish, size, executor);
    CHECK_EQ(
        aclnnGroupNormSwishGradGetWorkspaceSize(
            large(dy), statistic(mean), statistic(rstd), large(x), small(gamma, shape_.channels),
            small(beta, shape_.channels), shape_.groups, nullptr, 1.0, true, true, large(dx),
            small(dgamma, shape_.channels), small(dbeta, shape_.channels), &size, &executor),
        0);
    phase2(aclnnGroupNormSwishGrad, size, executor);
  }

  bool same(const Run& other) const {
    bool equal = true;
    for (int64_t n = 0; n < shape_.samples; ++n) {
      for (int64_t c = 0; c < shape_.channels; ++c) {
        for (int64_t p = 0; p < shape_.positions; ++p) {
          const int64_t a = place(n, c, p), b = other.place(n, c, p);
          equal = equal && std::memcmp(y.at(a), other.y.at(b), static_cast<size_t>(y.size())) == 0;
          equal =
              equal && std::memcmp(dx.at(a), other.dx.at(b), static_cast<size_t>(y.size())) == 0;
        }
      }
    }
    const auto bytes = static_cast<size_t>(shape_.channels * dgamma.size());
    return equal && std::memcmp(dgamma.at(0), other.dgamma.at(0), bytes) == 0 &&
           std::memcmp(dbeta.at(0), other.dbeta.at(0), bytes) == 0;
  }

  // The gradient of a normalised group sums to nothing.
  double sum_of_dx() const {
    double sum = 0;
    for (int64_t i = 0; i < shape_.count(); ++i) {
      float value;
      std::memcpy(&value, dx.at(i), sizeof value);
      sum += static_cast<double>(value);
    }
    return sum;
  }

 private:
  using Phase2 = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);

  void phase2(Phase2 function, uint64_t size, aclOpExecutor* executor) {
    const std::unique_ptr<void, void (*)(void*)> memory(size ? std::malloc(size + 8) : nullptr,
                                                        std::free);
    char* const workspace = size ? static_cast<char*>(memory.get()) + 8 : nullptr;  // not of 16
    for (int askew = 1; size > 0 && askew < 8; ++askew) {
      CHECK_FAILS(function(workspace - askew, size, executor, nullptr), 161002,
                  "workspace must be aligned to 8 bytes, but its address is 0x");
    }
    CHECK_EQ(function(workspace, size, executor, nullptr), 0);
    CHECK_EQ(aclrtSynchronizeStream(nullptr), 0);
  }

  void fill() {
    for (int64_t c = 0; c < shape_.channels; ++c) {
      gamma.set(c, 1 + 0.01f * static_cast<float>(c % 7));
      beta.set(c, 0.1f * static_cast<float>(c % 5) - 0.2f);
      for (int64_t n = 0; n < shape_.samples; ++n) {
        for (int64_t p = 0; p < shape_.positions; ++p) {
          const auto i = static_cast<float>((n * 31 + c * 7 + p * 13) % 101);
          x.set(place(n, c, p), 0.03f * i - 1);
          dy.set(place(n, c, p), 1 - 0.02f * i);
        }
      }
    }
  }

  aclTensor* keep(aclTensor* tensor) {
    tensors_.push_back(tensor);
    return tensor;
  }
  aclTensor* large(Memory& memory) {
    const int64_t dims[] = {shape_.samples, shape_.channels, shape_.positions};
    const int64_t sample = shape_.channels * shape_.positions;
    const int64_t strides[] = {sample, channels_last_ ? 1 : shape_.positions,
                               channels_last_ ? shape_.channels : 1};
    const int64_t storage = shape_.count();
    return keep(
        aclCreateTensor(dims, 3, dtype_, strides, 0, ACL_FORMAT_ND, &storage, 1, memory.at(0)));
  }
  aclTensor* small(Memory& memory, int64_t count) {
    return keep(
        aclCreateTensor(&count, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &count, 1, memory.at(0)));
  }
  aclTensor* statistic(Memory& memory) {
    const int64_t dims[] = {shape_.samples, shape_.groups};
    return keep(
        aclCreateTensor(dims, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, dims, 2, memory.at(0)));
  }

  Shape shape_;
  aclDataType dtype_;
  bool channels_last_;
  std::vector<const aclTensor*> tensors_;
  Memory x{shape_.count(), dtype_}, dy{shape_.count(), dtype_};
  Memory y{shape_.count(), dtype_}, dx{shape_.count(), dtype_};
  Memory gamma{shape_.channels, ACL_FLOAT}, beta{shape_.channels, ACL_FLOAT};
  Memory dgamma{shape_.channels, ACL_FLOAT}, dbeta{shape_.channels, ACL_FLOAT};
  Memory mean{shape_.samples * shape_.groups, ACL_FLOAT};
  Memory rstd{shape_.samples * shape_.groups, ACL_FLOAT};
};

// Brief work, which is done before the call returns where that is possible.
void* on_a_small_stack(void*) {
  CHECK_EQ(aclrtSetDevice(0), 0);
  for (const Shape& shape : {Shape{2, 12, 49, 4}, Shape{2, 9, 67, 3}, Shape{1, 64, 100, 2}}) {
    Run contiguous(shape, ACL_FLOAT, false), channels_last(shape, ACL_FLOAT, true);
    contiguous.run();
    channels_last.run();
    CHECK(contiguous.same(channels_last));
  }
  CHECK_EQ(aclrtResetDevice(0), 0);
  return nullptr;
}

void small_stack() {
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK_EQ(pthread_attr_init(&attributes), 0);
  CHECK_EQ(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
  CHECK_EQ(pthread_create(&thread, &attributes, on_a_small_stack, nullptr), 0);
  CHECK_EQ(pthread_join(thread, nullptr), 0);
  CHECK_EQ(pthread_attr_destroy(&attributes), 0);
}

}  // namespace

int main() {
  CHECK_EQ(setenv("OPENACLNN_NUM_THREADS", "3", 1), 0);
  CHECK_EQ(aclInit(nullptr), 0);
  CHECK_EQ(aclrtSetDevice(0), 0);
  // one position, short and ragged channels, rows, slots of u, groups split among threads
  const Shape shapes[] = {{3, 6, 1, 2},    {2, 4000, 1, 1},  {2, 12, 49, 4},
                          {1, 65, 64, 13}, {2, 9, 67, 3},    {9, 40, 300, 4},
                          {40, 8, 260, 4}, {1, 3, 17000, 1}, {1, 64, 1111, 2}};
  for (const Shape& shape : shapes) {
    for (const aclDataType dtype : {ACL_FLOAT, ACL_BF16}) {
      Run contiguous(shape, dtype, false), channels_last(shape, dtype, true);
      contiguous.run();
      channels_last.run();
      CHECK(contiguous.same(channels_last));
      if (dtype != ACL_FLOAT) continue;
      CHECK(std::fabs(contiguous.sum_of_dx()) < 1e-5 * static_cast<double>(shape.count()));
    }
  }
  small_stack();
  CHECK_EQ(aclrtResetDevice(0), 0);
  CHECK_EQ(aclFinalize(), 0);
  return check_result();
}
