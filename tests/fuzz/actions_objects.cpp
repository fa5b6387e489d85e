// SPDX-License-Identifier: Apache-2.0
// Tensors, scalars, arrays, lists and executors, each call with right and wrong handles.
#include <algorithm>

#include "world.h"

namespace fuzz {
namespace {

// ---- tensors ----

aclTensor* make_tensor(Random& random, void* data) {
  int64_t dims[26], strides[26];
  const uint64_t rank = random.chance(90) ? random.below(5) : random.below(27);
  for (uint64_t i = 0; i < rank; ++i) {
    dims[i] = random.chance(95) ? random.between(0, 5) : static_cast<int64_t>(random.next());
    strides[i] = random.chance(95) ? random.between(0, 30) : static_cast<int64_t>(random.next());
  }
  const auto dtype = static_cast<aclDataType>(random.chance(80) ? 0 : random.between(-1, 45));
  const int64_t offset = random.chance(90) ? 0 : static_cast<int64_t>(random.next());
  return CALL(aclCreateTensor, dims, rank, dtype, random.chance(50) ? nullptr : strides, offset,
              ACL_FORMAT_ND, dims, rank, data);
}

void create_tensor(World& w) {
  if (w.tensors.live.size() > 40) return;
  if (w.tensors.add(make_tensor(w.random, w.random.chance(50) ? &w : nullptr)) == nullptr) {
    CALL(aclGetRecentErrMsg);
  }
}

void destroy_tensor(World& w) {
  const Pick t = w.pick(w.tensors);
  auto* tensor = static_cast<aclTensor*>(t.handle);
  const Must must = t.live || t.handle == nullptr ? Must::pass : Must::fail;
  if (JUDGE(must, aclDestroyTensor, tensor) && t.handle != nullptr) w.tensors.kill(t.handle);
}

void ask_tensor(World& w) {
  const Pick t = w.pick(w.tensors);
  auto* tensor = static_cast<aclTensor*>(t.handle);
  const bool null = w.random.chance(10);
  const Must must = must_pass_if(t.live && !null);
  int64_t* dims = nullptr;
  uint64_t count = 0;
  int64_t offset = 0;
  aclFormat format;
  aclDataType dtype;
  void* address = nullptr;
  switch (w.random.below(8)) {
    case 0:
      if (JUDGE(must, aclGetViewShape, tensor, &dims, null ? nullptr : &count)) delete[] dims;
      break;
    case 1:
      if (JUDGE(must, aclGetViewStrides, tensor, null ? nullptr : &dims, &count)) delete[] dims;
      break;
    case 2:
      if (JUDGE(must, aclGetStorageShape, tensor, &dims, null ? nullptr : &count)) delete[] dims;
      break;
    case 3: JUDGE(must, aclGetViewOffset, tensor, null ? nullptr : &offset); break;
    case 4: JUDGE(must, aclGetFormat, tensor, null ? nullptr : &format); break;
    case 5: JUDGE(must, aclGetDataType, tensor, null ? nullptr : &dtype); break;
    case 6: JUDGE(must, aclGetRawTensorAddr, tensor, null ? nullptr : &address); break;
    default: JUDGE(must_pass_if(t.live), aclSetRawTensorAddr, tensor, garbage(w.random));
  }
}

void init_tensor(World& w) {
  const Pick t = w.pick(w.tensors);
  const int64_t dims[] = {w.random.between(-1, 5), 2};
  JUDGE(must_pass_if(t.live && dims[0] >= 0), aclInitTensor, static_cast<aclTensor*>(t.handle),
        dims, 2, ACL_FLOAT16, nullptr, 0, ACL_FORMAT_NCHW, dims, 2, nullptr);
}

// ---- scalars and arrays ----

void create_scalar(World& w) {
  if (w.scalars.live.size() > 20) return;
  double value[2] = {1, 2};
  const auto dtype = static_cast<aclDataType>(w.random.between(-1, 45));
  if (w.scalars.add(CALL(aclCreateScalar, w.random.chance(90) ? value : nullptr, dtype)) ==
      nullptr) {
    CALL(aclGetRecentErrMsg);
  }
}

void destroy_scalar(World& w) {
  const Pick s = w.pick(w.scalars);
  const Must must = s.live || s.handle == nullptr ? Must::pass : Must::fail;
  if (JUDGE(must, aclDestroyScalar, static_cast<aclScalar*>(s.handle)) && s.handle != nullptr) {
    w.scalars.kill(s.handle);
  }
}

// One kind of array: its functions, and where the handles go.
template <class Array, class Value, class Create, class Size, class Destroy>
void use_array(World& w, Pool& pool, const char* names[2], Create create, Size size,
               Destroy destroy) {
  Value values[8] = {};
  if (w.random.chance(40) && pool.live.size() < 10) {
    const uint64_t count = w.random.chance(90) ? w.random.below(9) : UINT64_MAX - w.random.below(9);
    ++run.calls;
    if (pool.add(create(values, count > 8 ? count : w.random.below(9))) == nullptr) {
      CALL(aclGetRecentErrMsg);
    }
    return;
  }
  const Pick array = w.pick(pool);
  auto* handle = static_cast<Array*>(array.handle);
  uint64_t count = 0;
  run.calls += 2;
  judge(names[0], size(handle, &count), must_pass_if(array.live));
  if (array.live && count > 8) fault("%s returns %llu", names[0], (unsigned long long)count);
  const Must must = array.live || handle == nullptr ? Must::pass : Must::fail;
  if (judge(names[1], destroy(handle), must) && handle != nullptr) pool.kill(handle);
}

void use_arrays(World& w) {
  static const char* ints[] = {"aclGetIntArraySize", "aclDestroyIntArray"};
  static const char* floats[] = {"aclGetFloatArraySize", "aclDestroyFloatArray"};
  static const char* bools[] = {"aclGetBoolArraySize", "aclDestroyBoolArray"};
  switch (w.random.below(3)) {
    case 0:
      return use_array<aclIntArray, int64_t>(w, w.int_arrays, ints, aclCreateIntArray,
                                             aclGetIntArraySize, aclDestroyIntArray);
    case 1:
      return use_array<aclFloatArray, float>(w, w.float_arrays, floats, aclCreateFloatArray,
                                             aclGetFloatArraySize, aclDestroyFloatArray);
    default:
      return use_array<aclBoolArray, bool>(w, w.bool_arrays, bools, aclCreateBoolArray,
                                           aclGetBoolArraySize, aclDestroyBoolArray);
  }
}

// ---- lists, which own their members ----

template <class T, class List, class Create, class Destroy>
void use_list(World& w, Pool& elements, Pool& lists, const char* name, Create create,
              Destroy destroy) {
  if (w.random.chance(50) && lists.live.size() < 6) {
    std::vector<const T*> chosen;
    bool good = true;
    for (uint64_t n = w.random.below(4); n > 0; --n) {
      const Pick p = w.pick(elements);
      const auto* member = static_cast<const T*>(p.handle);
      bool twice = false;
      for (const T* other : chosen) twice |= other == member && member != nullptr;
      if (twice) continue;
      good &= p.live || p.handle == nullptr;
      chosen.push_back(member);
    }
    ++run.calls;
    List* made = create(chosen.data(), chosen.size());
    if ((made != nullptr) != good)
      fault("%s: a list of such members must%s be made", name, good ? "" : " not");
    if (made == nullptr) CALL(aclGetRecentErrMsg);
    if (lists.add(made) == nullptr) return;
    for (const T* member : chosen) {
      if (member != nullptr) std::erase(elements.live, const_cast<T*>(member));  // it owns them now
      w.members[made].push_back(member);
    }
    return;
  }
  const Pick list = w.pick(lists);
  auto* handle = static_cast<List*>(list.handle);
  const Must must = list.live || handle == nullptr ? Must::pass : Must::fail;
  ++run.calls;
  if (!judge(name, destroy(handle), must) || handle == nullptr) return;
  lists.kill(handle);
  for (const void* member : w.members[handle]) {
    if (member != nullptr) elements.dead.push_back(const_cast<void*>(member));
  }
  w.members.erase(handle);
}

void use_tensor_list(World& w) {
  use_list<aclTensor, aclTensorList>(w, w.tensors, w.tensor_lists, "aclDestroyTensorList",
                                     aclCreateTensorList, aclDestroyTensorList);
}

void use_scalar_list(World& w) {
  use_list<aclScalar, aclScalarList>(w, w.scalars, w.scalar_lists, "aclDestroyScalarList",
                                     aclCreateScalarList, aclDestroyScalarList);
}

// ---- executors ----

void make_executor(World& w) {
  if (w.executors.live.size() > 12) return;
  plan_something(w);
}

void run_executor(World& w) {
  const Pick e = w.pick(w.executors), s = w.pick(w.streams);
  const Row* row = w.makers.count(e.handle) != 0 ? w.makers[e.handle] : &w.random.pick(rows);
  const bool other = w.random.chance(10);
  if (other) row = &w.random.pick(rows);
  auto* executor = static_cast<aclOpExecutor*>(e.handle);
  const bool wrong = !e.live || (!s.live && s.handle != nullptr) || row != w.makers[e.handle];
  ++run.calls;
  run.last = row->name;
  static char workspace[1 << 16];
  const aclnnStatus status = row->phase2(workspace, sizeof workspace, executor, s.handle);
  if (!judge(row->name, status, wrong ? Must::fail : Must::either)) return;
  w.pending = true;
  ++run.executed;
  if (w.repeatable[e.handle]) return;
  w.executors.kill(e.handle);
  w.consumed[e.handle] = true;
}

void repeat_executor(World& w) {
  const Pick e = w.pick(w.executors);
  auto* executor = static_cast<aclOpExecutor*>(e.handle);
  if (JUDGE(must_pass_if(e.live), aclSetAclOpExecutorRepeatable, executor)) {
    w.repeatable[e.handle] = true;
  }
}

// Of one that was run too: cautious programs do it, and nothing happens.
void destroy_executor(World& w) {
  const Pick e = w.pick(w.executors);
  auto* executor = static_cast<aclOpExecutor*>(e.handle);
  const bool may_be = e.live || w.consumed[e.handle];
  JUDGE(must_pass_if(may_be), aclDestroyAclOpExecutor, executor);
  if (e.live) w.executors.kill(e.handle);
}

void set_addresses(World& w) {
  const Pick e = w.pick(w.executors), t = w.pick(w.tensors), l = w.pick(w.tensor_lists);
  auto* executor = static_cast<aclOpExecutor*>(e.handle);
  auto* tensor = static_cast<aclTensor*>(t.handle);
  auto* list = static_cast<aclTensorList*>(l.handle);
  const size_t index = 20 + w.random.next() % 100;  // beyond any operator: nothing is set
  switch (w.random.below(6)) {
    case 0: JUDGE(Must::fail, aclSetInputTensorAddr, executor, index, tensor, &w); break;
    case 1: JUDGE(Must::fail, aclSetOutputTensorAddr, executor, index, tensor, &w); break;
    case 2: JUDGE(Must::fail, aclSetTensorAddr, executor, index, tensor, &w); break;
    case 3: JUDGE(Must::fail, aclSetDynamicInputTensorAddr, executor, index, 0, list, &w); break;
    case 4: JUDGE(Must::fail, aclSetDynamicOutputTensorAddr, executor, index, 0, list, &w); break;
    default: JUDGE(Must::fail, aclSetDynamicTensorAddr, executor, index, 0, list, &w);
  }
}

}  // namespace

aclOpExecutor* plan_something(World& w) {
  static float memory[16][6];
  const Row& row = w.random.pick(rows);
  const int64_t shape[] = {2, 3};
  std::vector<Value> values(row.parameters.size());
  std::vector<aclTensor*> tensors;
  std::vector<aclScalar*> scalars;
  float one = 1;
  for (size_t i = 0; i < values.size(); ++i) {
    switch (row.parameters[i].kind) {
      case Kind::tensor:
        tensors.push_back(CALL(aclCreateTensor, shape, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND,
                               shape, 2, memory[i]));
        values[i].handle = tensors.back();
        break;
      case Kind::scalar:
        scalars.push_back(CALL(aclCreateScalar, &one, ACL_FLOAT));
        values[i].handle = scalars.back();
        break;
      case Kind::real: values[i].real = 0.25; break;
      case Kind::integer: values[i].integer = 1; break;
      case Kind::flag: values[i].flag = false; break;
      case Kind::text: values[i].text = nullptr; break;
    }
  }
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  ++run.calls;
  // Tensors of one shape, where that is all there is to it.
  const bool known =
      row.sizes.empty() && std::none_of(row.parameters.begin(), row.parameters.end(),
                                        [](const Parameter& p) { return p.kind == Kind::integer; });
  const bool ok = judge(row.name, row.phase1(values.data(), &size, &executor),
                        known ? Must::pass : Must::either);
  for (aclTensor* t : tensors) JUDGE(Must::pass, aclDestroyTensor, t);
  for (aclScalar* s : scalars) JUDGE(Must::pass, aclDestroyScalar, s);
  ++(ok ? run.accepted : run.refused);
  if (!ok) return nullptr;
  w.executors.add(executor);
  w.makers[executor] = &row;
  w.repeatable[executor] = w.consumed[executor] = false;
  return executor;
}

const std::vector<Action> object_actions = {
    {8, create_tensor},    {5, destroy_tensor}, {8, ask_tensor},    {2, init_tensor},
    {3, create_scalar},    {2, destroy_scalar}, {5, use_arrays},    {3, use_tensor_list},
    {2, use_scalar_list},  {8, make_executor},  {10, run_executor}, {3, repeat_executor},
    {3, destroy_executor}, {4, set_addresses},
};

}  // namespace fuzz
