// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "families.h"
#include "shapes.h"

namespace fuzz {
namespace {

// Zero, one, infinity, NaN, the ends of fp32 and fp64, and numbers for which 1 - eps is rounded.
constexpr double kEnds[] = {0,     1,     HUGE_VAL, NAN, 5e-324,  1e-308,  1e308,
                            1e-45, 1e-38, 1e38,     0.5, 0x1p-24, 0x1p-53, 0x1p-54};

}  // namespace

double any_number(Random& random) {
  const double sign = random.chance(50) ? 1 : -1, mantissa = random.uniform(1, 2);
  switch (random.below(4)) {
    case 0: return sign * random.pick(kEnds);
    case 1: return sign * std::ldexp(mantissa, static_cast<int>(random.between(-149, 127)));
    case 2: return sign * std::ldexp(mantissa, static_cast<int>(random.between(-1074, 1023)));
    default: return sign * std::ldexp(mantissa, static_cast<int>(random.between(-8, 8)));
  }
}

namespace {

// Of the storage, as far as the arena goes.
size_t storage_bytes(const Given& t) {
  return std::min(static_cast<size_t>(product(t.storage)) * size_of(t.dtype),
                  static_cast<size_t>(t.arena->begin() + Arena::kBytes - t.data));
}

// Ordinary numbers, or any bits at all.
void fill(Random& random, const Given& t, bool ordinary) {
  const size_t bytes = storage_bytes(t), size = size_of(t.dtype);
  if (!ordinary) {
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
      const uint64_t value = random.next();
      std::memcpy(t.data + at, &value, 8);
    }
    return;
  }
  const double low = random.chance(50) ? 0 : -4, high = low == 0 ? 1 : 4;
  for (size_t at = 0; at + size <= bytes; at += size) {
    const double value = random.uniform(low, high);
    const auto narrow = static_cast<float>(value);
    uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    const auto brain = static_cast<uint16_t>(bits >> 16);
    const aclFloat16 half = aclFloatToFloat16(narrow);
    const void* source = size == 8 ? static_cast<const void*>(&value) : &narrow;
    if (t.dtype == ACL_BF16) source = &brain;
    if (t.dtype == ACL_FLOAT16) source = &half;
    std::memcpy(t.data + at, source, size);
  }
}

// A shape and dtypes that the row accepts, on views of every kind.
void good_tensors(Random& random, Case& c, const Arenas& arenas) {
  const Row& row = *c.row;
  std::vector<Dims> shapes(row.parameters.size());
  good_shapes(random, row, shapes);
  const aclDataType common = random.pick(row.dtypes);
  const aclDataType companions = random.chance(50) ? common : ACL_FLOAT;
  for (size_t i = 0; i < row.parameters.size(); ++i) {
    const Parameter& parameter = row.parameters[i];
    if (parameter.kind != Kind::tensor) continue;
    Given& t = c.tensors[i];
    const bool output = parameter.role != Role::input;
    t.shape = shapes[i];
    t.dtype = parameter.companion ? companions : common;
    if (!output && !row.equal_inputs && random.chance(25)) t.dtype = random.pick(row.dtypes);
    constexpr aclDataType castable[] = {ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE};
    if (parameter.role == Role::output && !row.equal_output && random.chance(25)) {
      t.dtype = random.pick(castable);
    }
    lay_out(random, t, arenas[i], output);
  }
  for (size_t i = 0; i < row.parameters.size(); ++i) {  // an output in the place of an input
    if (row.parameters[i].role != Role::output || !random.chance(10)) continue;
    if (row.parameters[i].companion) continue;
    for (size_t k = 0; k < i; ++k) {
      Given& in = c.tensors[k];
      const bool fits = row.parameters[k].role == Role::input && !row.parameters[k].companion &&
                        in.shape == shapes[i] && in.dtype == c.tensors[i].dtype;
      if (!fits) continue;
      lay_out(random, in, arenas[k], true);
      c.tensors[i] = in;
      break;
    }
  }
  for (size_t i = 0; i < row.parameters.size(); ++i) {
    if (row.parameters[i].kind == Kind::tensor) fill(random, c.tensors[i], c.ordinary);
  }
}

// Multiples of 1/64, or one of the whole range.
double good_number(Random& random) {
  if (random.chance(50)) return any_number(random);
  return static_cast<double>(random.between(-64, 128)) / 64;
}

void good_attributes(Random& random, Case& c) {
  static char nchw[] = "NCHW", nd[] = "ND";
  char* const texts[] = {nullptr, nullptr, nchw, nd};
  const Family& family = *c.row->family;
  for (size_t i = 0; i < c.row->parameters.size(); ++i) {
    Value& value = c.values[i];
    switch (c.row->parameters[i].kind) {
      case Kind::tensor: break;
      case Kind::scalar: {
        double number = good_number(random);
        auto narrow = static_cast<float>(number);
        const bool wide = random.chance(50);
        c.numbers[i] = wide ? number : narrow;
        c.made_scalars[i] = CALL(aclCreateScalar, wide ? static_cast<void*>(&number) : &narrow,
                                 wide ? ACL_DOUBLE : ACL_FLOAT);
        value.handle = c.made_scalars[i];
        break;
      }
      case Kind::real: {
        value.real = c.numbers[i] = family.good_real(random);
        break;
      }
      case Kind::integer:
        value.integer = family.good_integer != nullptr
                            ? family.good_integer(random, c)
                            : good_integer(random, *c.row, c.row->parameters[i].name, c.tensors);
        break;
      case Kind::flag:
        value.flag = random.chance(50);
        c.numbers[i] = value.flag ? 1 : 0;
        break;
      case Kind::text: value.text = random.pick(texts); break;
    }
  }
}

}  // namespace

bool is_wanted(const Case& c, size_t i) {
  const Parameter& parameter = c.row->parameters[i];
  return parameter.kind == Kind::tensor &&
         (parameter.condition < 0 || c.values[static_cast<size_t>(parameter.condition)].flag);
}

const char* name_of(const Case& c, size_t i) { return c.row->parameters[i].name; }

Case good_case(Random& random, const Row& row, const Arenas& arenas) {
  Case c;
  c.row = &row;
  c.tensors.resize(row.parameters.size());
  c.values.resize(row.parameters.size());
  c.ordinary = random.chance(70);
  good_tensors(random, c, arenas);
  good_attributes(random, c);
  if (row.family->resize != nullptr && c.ordinary && random.chance(70))
    row.family->resize(random, c);
  return c;
}

void create_tensors(Case& c) {
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    if (c.row->parameters[i].kind != Kind::tensor) continue;
    create(c.tensors[i]);
    if (c.tensors[i].made != nullptr) continue;
    if (!c.broken) fault("aclCreateTensor refused a good tensor: %s", aclGetRecentErrMsg());
    CALL(aclGetRecentErrMsg);
  }
}

void pass_tensors(Case& c) {
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    if (c.row->parameters[i].kind == Kind::tensor) c.values[i].handle = c.tensors[i].passed;
  }
}

void destroy_made(Case& c) {
  for (Given& t : c.tensors) {
    if (t.made != nullptr && CALL(aclDestroyTensor, t.made) != ACLNN_SUCCESS) {
      fault("aclDestroyTensor refused a live tensor: %s", aclGetRecentErrMsg());
    }
    t.made = nullptr;
  }
  for (aclScalar*& scalar : c.made_scalars) {
    if (scalar != nullptr && CALL(aclDestroyScalar, scalar) != ACLNN_SUCCESS) {
      fault("aclDestroyScalar refused a live scalar: %s", aclGetRecentErrMsg());
    }
    scalar = nullptr;
  }
}

}  // namespace fuzz
