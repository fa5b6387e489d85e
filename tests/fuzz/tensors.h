// SPDX-License-Identifier: Apache-2.0
// For these tensors the fuzzer knows where every element lies, and what the library must return.
#pragma once

#include <string>
#include <vector>

#include "fuzz.h"

namespace fuzz {

using Dims = std::vector<int64_t>;

// Memory between two pages that fault. Blocks lie at its very end or its very begin.
class Arena {
 public:
  static constexpr size_t kBytes = size_t{1} << 20;

  Arena();
  std::byte* begin() const { return begin_; }
  std::byte* place(Random& random, size_t bytes) const {
    return random.chance(75) ? begin_ + kBytes - bytes : begin_;
  }

 private:
  std::byte* begin_;
};

// What is passed to aclCreateTensor, and what came of it.
struct Given {
  aclDataType dtype = ACL_FLOAT;
  Dims shape, strides, storage;
  bool null_strides = false, null_shape = false, null_storage = false;
  int64_t offset = 0;
  std::byte* data = nullptr;
  const Arena* arena = nullptr;
  aclTensor* made = nullptr;  // NULL when creation was refused
  void* passed = nullptr;     // to phase 1: may be another handle altogether

  bool live() const { return made != nullptr && passed == made; }
  Dims effective_strides() const;
};

std::string to_text(const Given& tensor);

size_t size_of(aclDataType dtype);  // 0 where an element has no whole bytes
int64_t product(const Dims& dims);  // of dims that are known to be small

// Byte offsets from data of every element in row-major order; of a small view.
std::vector<int64_t> element_offsets(const Given& tensor);

// Elements of the view lie in [low, high) of elements from data; saturated, exact where it counts.
struct Range {
  __int128 low, high;
};
Range range_of(const Given& tensor);
bool is_empty(const Given& tensor);

// Whether all bytes that the view names are in the arena: then phase 2 may run.
bool is_real(const Given& tensor);

// Why an operator must refuse this tensor; empty when it need not.
std::string objection(const Row& row, const Parameter& parameter, const Given& tensor);
// The same for two of them, the first an output.
std::string overlap_objection(const Given& output, const Given& other);

// A valid view of the shape over fresh memory of the arena.
void lay_out(Random& random, Given& tensor, const Arena& arena, bool output);
// The same elements without gaps.
Given contiguous(const Given& tensor, const Arena& arena);

Dims random_shape(Random& random);
void create(Given& tensor);

}  // namespace fuzz
