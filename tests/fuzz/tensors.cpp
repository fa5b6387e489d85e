// SPDX-License-Identifier: Apache-2.0
#include "tensors.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <numeric>

namespace fuzz {
namespace {

constexpr __int128 kFar = __int128{1} << 100;  // saturation: nothing real reaches it

__int128 saturated_product(__int128 a, __int128 b) {
  if (a == 0 || b == 0) return 0;
  return a > kFar / b ? kFar : a * b;
}

__int128 count_of(const Dims& dims) {
  __int128 count = 1;
  for (const int64_t d : dims) count = saturated_product(count, d);
  return count;
}

// Few enough elements to list them; dims of stride 0 may be of any size.
bool is_small(const Given& tensor) { return count_of(tensor.shape) <= int64_t{Arena::kBytes}; }

}  // namespace

std::string to_text(const Given& t) {
  const auto list = [](const Dims& dims) {
    std::string text = "[";
    for (const int64_t d : dims) text += (text.size() > 1 ? ", " : "") + std::to_string(d);
    return text + "]";
  };
  return "shape " + list(t.shape) + ", strides " + (t.null_strides ? "NULL" : list(t.strides)) +
         ", offset " + std::to_string(t.offset) + ", storage " + list(t.storage) + ", dtype " +
         std::to_string(t.dtype) + ", data " + std::to_string(reinterpret_cast<uintptr_t>(t.data));
}

Arena::Arena() {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* all = mmap(nullptr, kBytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  begin_ = static_cast<std::byte*>(all) + page;
  if (all == MAP_FAILED || mprotect(begin_, kBytes, PROT_READ | PROT_WRITE) != 0) std::abort();
}

Dims Given::effective_strides() const {
  if (!null_strides) return strides;
  Dims result(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    result[i - 1] = result[i] * std::max<int64_t>(shape[i], 1);
  return result;
}

size_t size_of(aclDataType dtype) { return aclDataTypeSize(dtype); }

int64_t product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

bool is_empty(const Given& tensor) {
  return std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
}

Range range_of(const Given& tensor) {
  if (is_empty(tensor)) return {0, 0};
  const Dims strides = tensor.effective_strides();
  __int128 last = tensor.offset;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    last = std::min(kFar, last + saturated_product(tensor.shape[i] - 1, strides[i]));
  }
  return {tensor.offset, last + 1};
}

bool is_real(const Given& tensor) {
  if (is_empty(tensor)) return true;
  if (tensor.arena == nullptr || tensor.data == nullptr) return false;
  if (std::less<>()(tensor.data, tensor.arena->begin())) return false;  // a pointer to nowhere
  const auto room = tensor.arena->begin() + Arena::kBytes - tensor.data;
  const Range range = range_of(tensor);
  return range.low >= 0 && range.high * static_cast<__int128>(size_of(tensor.dtype)) <= room;
}

std::vector<int64_t> element_offsets(const Given& tensor) {
  const auto size = static_cast<int64_t>(size_of(tensor.dtype));
  const Dims strides = tensor.effective_strides();
  const auto count = static_cast<size_t>(product(tensor.shape));
  std::vector<int64_t> offsets(count);
  Dims index(tensor.shape.size(), 0);
  int64_t at = tensor.offset;
  for (size_t n = 0; n < count; ++n) {
    offsets[n] = at * size;
    for (size_t d = index.size(); d-- > 0;) {
      if (tensor.shape[d] == 1) continue;  // whatever its stride
      at += strides[d];
      if (++index[d] < tensor.shape[d]) break;
      at -= index[d] * strides[d];
      index[d] = 0;
    }
  }
  return offsets;
}

std::string objection(const Row& row, const Parameter& parameter, const Given& tensor) {
  if (tensor.passed == nullptr) return parameter.required ? "is NULL" : "";
  if (!tensor.live()) return "is not a live handle";
  const bool output = parameter.role == Role::output;
  const auto has = [&](aclDataType dtype) {
    return std::find(row.dtypes.begin(), row.dtypes.end(), dtype) != row.dtypes.end();
  };
  const bool castable = output && !row.equal_output &&
                        (tensor.dtype == ACL_FLOAT || tensor.dtype == ACL_FLOAT16 ||
                         tensor.dtype == ACL_BF16 || tensor.dtype == ACL_DOUBLE);
  if (!has(tensor.dtype) && !castable) return "has a dtype that the row does not list";
  if (tensor.shape.size() > 8) return "has more than 8 dimensions";
  if (is_empty(tensor)) return "";
  if (range_of(tensor).high > count_of(tensor.storage)) return "reaches outside its storage";
  if (tensor.data == nullptr) return "has no data";
  if (reinterpret_cast<uintptr_t>(tensor.data) % size_of(tensor.dtype) != 0)
    return "is not aligned";
  const auto bytes = static_cast<uintptr_t>(range_of(tensor).high) * size_of(tensor.dtype);
  if (reinterpret_cast<uintptr_t>(tensor.data) + bytes < bytes) return "wraps around";
  if (parameter.role != Role::input && is_real(tensor)) {
    if (!is_small(tensor)) return "has more elements than memory";
    std::vector<int64_t> offsets = element_offsets(tensor);
    std::sort(offsets.begin(), offsets.end());
    if (std::adjacent_find(offsets.begin(), offsets.end()) != offsets.end()) {
      return "is written twice at one address";
    }
  }
  return "";
}

std::string overlap_objection(const Given& output, const Given& other) {
  if (!output.live() || !other.live() || output.arena != other.arena) return "";
  if (!is_real(output) || !is_real(other) || is_empty(output) || is_empty(other)) return "";
  if (!is_small(output) || !is_small(other)) return "";
  const auto size = static_cast<int64_t>(size_of(output.dtype));
  const auto other_size = static_cast<int64_t>(size_of(other.dtype));
  std::vector<int64_t> a = element_offsets(output), b = element_offsets(other);
  for (int64_t& at : a) at += output.data - output.arena->begin();
  for (int64_t& at : b) at += other.data - other.arena->begin();
  if (size == other_size && a == b && output.dtype == other.dtype) return "";
  static thread_local std::vector<char> used;
  used.assign(Arena::kBytes, 0);
  for (const int64_t at : a) std::fill_n(used.begin() + at, size, 1);
  for (const int64_t at : b) {
    if (std::find(used.begin() + at, used.begin() + at + other_size, 1) !=
        used.begin() + at + other_size) {
      return "overlaps an output in part";
    }
  }
  return "";
}

Dims random_shape(Random& random) {
  if (random.chance(3)) return {random.between(1, 9000)};
  if (random.chance(1)) return {random.between(9000, 120'000)};  // for several threads
  Dims shape(random.below(random.chance(70) ? 5 : 9));
  for (int64_t& d : shape) d = random.between(1, 4);
  if (!shape.empty() && random.chance(15)) random.pick(shape) = random.between(5, 70);
  if (!shape.empty() && random.chance(3)) random.pick(shape) = 0;
  while (product(shape) > 9000) *std::max_element(shape.begin(), shape.end()) = 2;
  return shape;
}

void lay_out(Random& random, Given& tensor, const Arena& arena, bool output) {
  const size_t rank = tensor.shape.size();
  std::vector<size_t> order(rank);
  std::iota(order.begin(), order.end(), size_t{0});
  const bool plain = random.chance(40);
  for (size_t i = rank; !plain && random.chance(50) && i-- > 1;) {
    std::swap(order[i], order[random.below(i + 1)]);
  }
  const bool small = product(tensor.shape) <= 4096;
  tensor.null_strides = false;
  tensor.strides.assign(rank, 0);
  int64_t step = 1;
  for (size_t i = rank; i-- > 0;) {
    const size_t d = order[i];
    if (!plain && small && random.chance(15) && step < 1000) step *= random.between(2, 3);
    if (!plain && !output && random.chance(8)) continue;  // stride 0
    tensor.strides[d] = step;
    if (tensor.shape[d] == 1 && random.chance(10)) {
      tensor.strides[d] = random.between(0, INT64_MAX);  // never taken
    } else {
      step *= std::max<int64_t>(tensor.shape[d], 1);
    }
  }
  tensor.offset = plain ? 0 : random.between(0, random.chance(30) ? 17 : 0);
  constexpr __int128 kMost = Arena::kBytes / sizeof(double) - 64;  // elements
  if (range_of(tensor).high > kMost) tensor.null_strides = true, tensor.offset = 0;
  const auto storage =
      static_cast<int64_t>(range_of(tensor).high) + (plain ? 0 : random.between(0, 2));
  tensor.null_strides |= plain && random.chance(50);
  tensor.storage = plain && random.chance(50) ? tensor.shape : Dims{storage};
  tensor.arena = &arena;
  tensor.data = arena.place(random, static_cast<size_t>(storage) * size_of(tensor.dtype));
}

Given contiguous(const Given& tensor, const Arena& arena) {
  Given result;
  result.dtype = tensor.dtype;
  result.shape = result.storage = tensor.shape;
  result.null_strides = true;
  result.arena = &arena;
  result.data = arena.begin();
  return result;
}

void create(Given& t) {
  t.made = CALL(aclCreateTensor, t.null_shape ? nullptr : t.shape.data(), t.shape.size(), t.dtype,
                t.null_strides ? nullptr : t.strides.data(), t.offset, ACL_FORMAT_ND,
                t.null_storage ? nullptr : t.storage.data(), t.storage.size(), t.data);
  t.passed = t.made;
}

}  // namespace fuzz
