// SPDX-License-Identifier: Apache-2.0
// One call of an operator as the fuzzer made it: good, then perhaps spoilt; and what it must do.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "fuzz.h"
#include "tensors.h"

namespace fuzz {

constexpr size_t kWorkspace = size_t{1} << 24;

using Arenas = std::array<Arena, 16>;  // one for each parameter that is a tensor

struct Case {
  const Row* row = nullptr;
  std::vector<Given> tensors;  // by parameter; unused where that is none
  std::vector<Value> values;   // what phase 1 gets
  std::array<aclScalar*, 16> made_scalars{};
  std::array<double, 16> numbers{};                 // of scalars and attributes
  std::array<std::vector<double>, 16> originals{};  // elements of inputs, when verified
  bool ordinary = true;                             // numbers, not any bits
  bool broken = false;
  bool null_size = false, null_executor = false;
  uint64_t workspace_size = 0;
};

// A number of the whole range, of either sign: an end, or any exponent of fp32 or fp64, or one near
// 1.
double any_number(Random& random);

// Arguments that a row accepts, except that its rules may refuse them; tensors are not created yet.
Case good_case(Random& random, const Row& row, const Arenas& arenas);

// Spoils it, before the tensors are created and after.
void break_arguments(Random& random, Case& c);
void break_handles(Random& random, Case& c);

void create_tensors(Case& c);  // and puts the handles into the values
void pass_tensors(Case& c);
void destroy_made(Case& c);

// Whether a parameter is a tensor that the operator reads or writes.
bool is_wanted(const Case& c, size_t parameter);
const char* name_of(const Case& c, size_t parameter);

// ---- what phase 2 must leave in memory ----

// The bytes of the tensors' storages and some around them.
struct Window {
  const Arena* arena;
  std::byte* begin;
  std::vector<std::byte> bytes;
};
using Memory = std::vector<Window>;

Memory memory_of(const Case& c);
void restore(const Memory& memory);
// Turns memory before phase 2 into memory after it: the results of the same call on tensors without
// gaps, which must be those of the formula where there is one, put to where the views say.
void expect(Case& c, Memory& memory, void* workspace);
void compare(const Case& c, const Memory& expected);

}  // namespace fuzz
