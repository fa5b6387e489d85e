// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "cases.h"

namespace fuzz {
namespace {

int64_t wild_integer(Random& random) {
  constexpr int64_t values[] = {-1,
                                0,
                                1,
                                7,
                                4096,
                                int64_t{1} << 20,
                                int64_t{1} << 31,
                                (int64_t{1} << 32) + 1,
                                int64_t{1} << 40,
                                (int64_t{1} << 58) - 1,
                                int64_t{1} << 58,
                                int64_t{1} << 61,
                                int64_t{1} << 62,
                                INT64_MAX - 1,
                                INT64_MAX,
                                INT64_MIN,
                                INT64_MIN + 1};
  return random.chance(20) ? static_cast<int64_t>(random.next()) : random.pick(values);
}

double wild_real(Random& random) {
  constexpr double limit = std::numeric_limits<double>::infinity();
  constexpr double values[] = {
      0,    -0.0,  0.5,   1,      1.5,    -1,     1e-30,
      1e30, 1e308, limit, -limit, -1e308, 5e-324, std::numeric_limits<double>::quiet_NaN()};
  return random.pick(values);
}

void break_dims(Random& random, Dims& dims) {
  if (dims.empty()) {
    dims.push_back(wild_integer(random));
  } else {
    random.pick(dims) = wild_integer(random);
  }
}

// `address` may be NULL, to which pointer arithmetic must add nothing.
void* behind(void* address, uintptr_t bytes) {
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(address) + bytes);
}

void break_tensor(Random& random, Case& c, Given& t) {
  switch (random.below(14)) {
    case 0: t.dtype = static_cast<aclDataType>(random.between(-2, 45)); break;
    case 1: break_dims(random, t.shape); break;
    case 2: break_dims(random, t.shape), t.null_strides = true; break;
    case 3:
      t.null_strides = false, t.strides.resize(t.shape.size(), 1);
      break_dims(random, t.strides);
      break;
    case 4: t.offset = wild_integer(random); break;
    case 5: break_dims(random, t.storage); break;
    case 6: t.storage.assign(1, random.between(0, 3)); break;
    case 7: t.data = nullptr; break;
    case 8: t.data = static_cast<std::byte*>(behind(t.data, 1)); break;
    case 9: {  // more dimensions than there may be
      const size_t more = random.below(30);
      t.shape.insert(t.shape.begin(), more, 1);
      t.strides.insert(t.strides.begin(), more, 1);
      break;
    }
    case 10: (random.chance(50) ? t.null_shape : t.null_storage) = true; break;
    case 11:
      if (!t.shape.empty()) {
        int64_t& dim = random.pick(t.shape);
        // one that was spoilt before may wrap
        (void)__builtin_add_overflow(dim, random.between(-1, 1), &dim);
      }
      break;
    case 12: {  // some way into the memory of another
      const Given& other = random.pick(c.tensors);
      if (other.arena == nullptr || other.data == nullptr) break;
      const auto room = other.arena->begin() + Arena::kBytes - other.data;
      if (room < 0) break;  // spoilt before, to one byte past the end
      t.arena = other.arena;
      t.data = other.data + random.between(0, std::min<int64_t>(64, room)) / 8 * 8;
      break;
    }
    default: t.data = static_cast<std::byte*>(garbage(random)), t.arena = nullptr; break;
  }
  // A shape and its strides are one list in the C interface.
  if (!t.null_strides) t.strides.resize(t.shape.size(), 1);
}

}  // namespace

void break_arguments(Random& random, Case& c) {
  c.broken = true;
  for (uint64_t times = random.between(1, 2); times > 0; --times) {
    const size_t i = random.below(c.tensors.size());
    Value& value = c.values[i];
    switch (c.row->parameters[i].kind) {
      case Kind::tensor: break_tensor(random, c, c.tensors[i]); break;
      case Kind::scalar: {
        double wild[2] = {wild_real(random), wild_real(random)};
        if (random.chance(50)) wild[0] = static_cast<double>(static_cast<float>(wild[0]));
        CALL(aclDestroyScalar, c.made_scalars[i]);
        c.made_scalars[i] =
            CALL(aclCreateScalar, wild, static_cast<aclDataType>(random.between(-2, 45)));
        value.handle = c.made_scalars[i];
        break;
      }
      case Kind::real: value.real = wild_real(random); break;
      case Kind::integer: value.integer = wild_integer(random); break;
      case Kind::flag: value.flag = !value.flag; break;
      case Kind::text: {
        static char texts[][8] = {"NHWC", "nchw", "%s%n", "\xff\xfe", ""};
        value.text = random.pick(texts);
        break;
      }
    }
  }
}

void break_handles(Random& random, Case& c) {
  c.broken = true;
  if (random.chance(10)) c.null_size = true;
  if (random.chance(10)) c.null_executor = true;
  const size_t i = random.below(c.tensors.size());
  const Kind kind = c.row->parameters[i].kind;
  if (kind != Kind::tensor && kind != Kind::scalar) return;
  void* wrong = nullptr;
  void* right = kind == Kind::tensor ? c.tensors[i].passed : c.values[i].handle;
  switch (random.below(5)) {
    case 0: break;
    case 1: wrong = garbage(random); break;
    case 2: wrong = behind(right, 16); break;
    case 3: {  // of another kind
      const size_t k = random.below(c.tensors.size());
      const Kind other = c.row->parameters[k].kind;
      if (other == kind || (other != Kind::tensor && other != Kind::scalar)) return;
      wrong = other == Kind::tensor ? c.tensors[k].passed : c.values[k].handle;
      break;
    }
    default:  // destroyed just now
      wrong = right;
      if (kind == Kind::tensor) {
        CALL(aclDestroyTensor, c.tensors[i].made);
        c.tensors[i].made = nullptr;
      } else {
        CALL(aclDestroyScalar, c.made_scalars[i]);
        c.made_scalars[i] = nullptr;
      }
  }
  if (kind == Kind::tensor) {
    c.tensors[i].passed = wrong;
  } else {
    c.values[i].handle = wrong;
  }
}

}  // namespace fuzz
