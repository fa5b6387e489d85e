// SPDX-License-Identifier: Apache-2.0
// What an operator must leave in memory, byte for byte.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "cases.h"
#include "families.h"
#include "formulas.h"

namespace fuzz {
namespace {

constexpr ptrdiff_t kAround = 256;  // bytes on both sides of a storage that are watched

const Arenas& arenas() {
  static thread_local Arenas all;
  return all;
}

// A view that reaches beyond it all is there, too, where nobody may look: an output not required.
bool has_memory(const Given& t) {
  return t.arena != nullptr && t.made != nullptr && !is_empty(t) && is_real(t);
}

Window& window_of(Memory& memory, const Given& t) {
  return *std::find_if(memory.begin(), memory.end(),
                       [&t](const Window& w) { return w.arena == t.arena; });
}

std::byte* copy_of(Memory& memory, const Given& t) {
  Window& window = window_of(memory, t);
  return window.bytes.data() + (t.data - window.begin);
}

}  // namespace

Memory memory_of(const Case& c) {
  Memory memory;
  for (const Given& t : c.tensors) {
    if (!has_memory(t)) continue;
    const auto size = static_cast<ptrdiff_t>(size_of(t.dtype));
    std::byte *const first = t.arena->begin(), *const last = first + Arena::kBytes;
    std::byte* begin = first + std::max<ptrdiff_t>(t.data - first - kAround, 0);
    const auto high = static_cast<ptrdiff_t>(range_of(t).high) * size;
    std::byte* end = first + std::min<ptrdiff_t>(t.data - first + high + kAround, last - first);
    const auto known = std::find_if(memory.begin(), memory.end(),
                                    [&t](const Window& w) { return w.arena == t.arena; });
    if (known != memory.end()) {
      begin = std::min(begin, known->begin);
      end = std::max(end, known->begin + known->bytes.size());
      *known = {t.arena, begin, {begin, end}};
    } else {
      memory.push_back({t.arena, begin, {begin, end}});
    }
  }
  return memory;
}

void restore(const Memory& memory) {
  for (const Window& w : memory) std::copy(w.bytes.begin(), w.bytes.end(), w.begin);
}

void expect(Case& c, Memory& memory, void* workspace) {
  const auto& parameters = c.row->parameters;
  std::vector<Given> plain(parameters.size());
  std::vector<Value> values = c.values;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Given& t = c.tensors[i];
    if (parameters[i].kind != Kind::tensor || t.made == nullptr) continue;
    plain[i] = contiguous(t, arenas()[i]);
    c.originals[i].clear();
    if (has_memory(t)) {
      const std::byte* base = copy_of(memory, t);
      const size_t size = size_of(t.dtype);
      std::byte* next = plain[i].data;
      for (const int64_t at : element_offsets(t)) {
        std::memcpy(next, base + at, size);
        c.originals[i].push_back(value_at(next, t.dtype));
        next += size;
      }
    }
    create(plain[i]);
    values[i].handle = plain[i].made;
  }
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  run.calls += 2;
  if (c.row->phase1(values.data(), &size, &executor) != ACLNN_SUCCESS) {
    fault("%s refused without gaps what it accepted with them: %s", c.row->name,
          aclGetRecentErrMsg());
  }
  if (size > kWorkspace) {
    fault("%s asked for %llu bytes", c.row->name, static_cast<unsigned long long>(size));
  }
  if (c.row->phase2(workspace, size, executor, nullptr) != ACLNN_SUCCESS ||
      CALL(aclrtSynchronizeStream, nullptr) != ACL_SUCCESS) {
    fault("%s, phase 2: %s", c.row->name, aclGetRecentErrMsg());
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Given& t = c.tensors[i];
    if (plain[i].made == nullptr) continue;
    CALL(aclDestroyTensor, plain[i].made);
    // An output that is not required stays as it is, also where another lies over it.
    if (parameters[i].role == Role::input || !is_wanted(c, i) || !has_memory(t)) continue;
    std::byte* base = copy_of(memory, t);
    const size_t bytes = size_of(t.dtype);
    const std::byte* next = plain[i].data;
    for (const int64_t at : element_offsets(t)) {
      std::memcpy(base + at, next, bytes);
      next += bytes;
    }
  }
  if (!c.broken) c.row->family->check(c, plain);
}

void compare(const Case& c, const Memory& expected) {
  for (const Window& w : expected) {
    const auto [want, got] = std::mismatch(w.bytes.begin(), w.bytes.end(), w.begin);
    if (want == w.bytes.end()) continue;
    size_t i = 0;
    while (c.tensors[i].arena != w.arena) ++i;
    std::string all;
    for (size_t k = 0; k < c.tensors.size(); ++k) {
      if (c.tensors[k].made == nullptr) continue;
      all += std::string("\n  ") + name_of(c, k) + ": " + to_text(c.tensors[k]);
    }
    fault("%s: byte %lld from the data of %s is %d, but must be %d; its tensors:%s", c.row->name,
          static_cast<long long>(got - c.tensors[i].data), name_of(c, i), static_cast<int>(*got),
          static_cast<int>(*want), all.c_str());
  }
}

}  // namespace fuzz
