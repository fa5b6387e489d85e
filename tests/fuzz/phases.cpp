// SPDX-License-Identifier: Apache-2.0
// One operator, both phases: good arguments, then some of them broken. What phase 1 accepts must be
// what the rules accept; what phase 2 wrote must be the same as from tensors without gaps, the
// formula's result where there is one, and nothing else.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "cases.h"
#include "fuzz.h"
#include "tensors.h"

namespace fuzz {

namespace {

aclrtStream streams[4];  // the first is NULL, the default
void* workspace = nullptr;

Arenas& arenas() {
  static Arenas all;
  return all;
}

// What phase 1 must not accept, in a sentence.
std::string objection(const Case& c) {
  const auto& parameters = c.row->parameters;
  if (c.null_size || c.null_executor) return "workspaceSize or executor is NULL";
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].kind == Kind::scalar && c.values[i].handle != c.made_scalars[i]) {
      return std::string(name_of(c, i)) + " is not a live handle";
    }
    if (parameters[i].kind != Kind::tensor || !is_wanted(c, i)) continue;
    std::string why = objection(*c.row, parameters[i], c.tensors[i]);
    for (size_t k = 0; k < parameters.size() && why.empty(); ++k) {
      if (k == i || parameters[i].role == Role::input || !is_wanted(c, k)) continue;
      why = overlap_objection(c.tensors[i], c.tensors[k]);
    }
    if (!why.empty()) return std::string(name_of(c, i)) + " " + why + ": " + to_text(c.tensors[i]);
  }
  return "";
}

constexpr size_t kSpare = 32;  // bytes that aclrtMalloc reserves behind the workspace

constexpr uint64_t kUntouched = 0x5a5a5a5a5a5a5a5a;

aclOpExecutor* untouched() { return reinterpret_cast<aclOpExecutor*>(uintptr_t{kUntouched}); }

// The executor, or nullptr when the call was refused.
aclOpExecutor* phase1(Case& c) {
  uint64_t size = kUntouched;
  aclOpExecutor* executor = untouched();
  ++run.calls;
  run.last = c.row->name;
  const aclnnStatus status = c.row->phase1(c.values.data(), c.null_size ? nullptr : &size,
                                           c.null_executor ? nullptr : &executor);
  const std::string why = objection(c);
  if (status == ACLNN_SUCCESS) {
    if (!why.empty()) fault("%s accepted a call although %s", c.row->name, why.c_str());
    if (size == kUntouched || executor == untouched()) fault("%s wrote no result", c.row->name);
    ++run.accepted;
    c.workspace_size = size;
    return executor;
  }
  ++run.refused;
  const std::string message = CALL(aclGetRecentErrMsg);
  if (message.find(c.row->name) == std::string::npos || message.back() != '\n') {
    fault("%s returned %d with the message \"%s\"", c.row->name, status, message.c_str());
  }
  const bool known = status == ACLNN_ERR_PARAM_NULLPTR || status == ACLNN_ERR_PARAM_INVALID;
  if (!known) fault("%s returned %d: %s", c.row->name, status, message.c_str());
  if (size != kUntouched || executor != untouched()) {
    fault("%s wrote a result although it returned %d", c.row->name, status);
  }
  if (!c.broken && !c.row->has_rules) {
    fault("%s refused a good call: %s", c.row->name, message.c_str());
  }
  return nullptr;
}

aclnnStatus phase2(const Case& c, aclOpExecutor* executor, aclrtStream stream) {
  ++run.calls;
  run.last = c.row->name;
  return c.row->phase2(workspace, c.workspace_size, executor, stream);
}

void must_refuse(const Case& c, aclnnStatus status, const char* what) {
  if (status == ACLNN_SUCCESS) fault("%s, phase 2, accepted %s", c.row->name, what);
  const std::string message = CALL(aclGetRecentErrMsg);
  if (message.find(c.row->name) == std::string::npos) {
    fault("%s, phase 2, refused %s with the message \"%s\"", c.row->name, what, message.c_str());
  }
}

// A workspace around an element of a tensor.
void over_a_tensor(Random& random, const Case& c, aclOpExecutor* executor) {
  const size_t i = random.below(c.tensors.size());
  const Given& t = c.tensors[i];
  if (c.workspace_size == 0 || t.made == nullptr || !is_wanted(c, i) || is_empty(t)) return;
  std::vector<int64_t> elements = element_offsets(t);
  const std::byte* element = t.data + random.pick(elements);
  const auto at = reinterpret_cast<uintptr_t>(element) / 8 * 8;
  const uintptr_t before = 8 * random.below(c.workspace_size / 8);
  auto* wrong = reinterpret_cast<void*>(at - before);
  must_refuse(c, c.row->phase2(wrong, c.workspace_size, executor, nullptr),
              "a workspace over a tensor");
}

// Phase 2 as it must not be called; the executor stays what it was.
void wrong_phase2(Random& random, const Case& c, aclOpExecutor* executor) {
  const Row& row = *c.row;
  ++run.calls;
  run.last = row.name;
  switch (random.below(7)) {
    case 0: must_refuse(c, row.phase2(nullptr, 0, nullptr, nullptr), "no executor"); break;
    case 1: {
      auto* wrong = static_cast<aclOpExecutor*>(garbage(random));
      must_refuse(c, row.phase2(nullptr, 0, wrong, nullptr), "a garbage executor");
      break;
    }
    case 2:
      must_refuse(c, row.phase2(nullptr, c.workspace_size + 64, executor, nullptr),
                  "NULL as workspace of some size");
      break;
    case 3:
      if (c.workspace_size == 0) break;
      must_refuse(c, row.phase2(workspace, c.workspace_size - 1, executor, nullptr),
                  "too small a workspace");
      break;
    case 4: {
      if (c.workspace_size == 0) break;
      const size_t left = 8 * (1 + random.below(c.workspace_size / 8 - 1));
      std::byte* end = static_cast<std::byte*>(workspace) + kWorkspace + kSpare;
      must_refuse(c, row.phase2(end - left, c.workspace_size, executor, nullptr),
                  "a workspace that ends too soon");
      break;
    }
    case 5: over_a_tensor(random, c, executor); break;
    default:
      must_refuse(c, row.phase2(workspace, c.workspace_size, executor, garbage(random)),
                  "a garbage stream");
  }
}

// The address of a tensor that is there already, set once more by its index or by a wrong one.
void set_addresses(Random& random, Case& c, aclOpExecutor* executor) {
  size_t index = 0;
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    const Role role = c.row->parameters[i].role;
    if (c.tensors[i].made == nullptr || role == Role::output) continue;
    if (CALL(aclSetInputTensorAddr, executor, index++, c.tensors[i].made, c.tensors[i].data) != 0) {
      fault("%s: %s", c.row->name, aclGetRecentErrMsg());
    }
    if (!random.chance(20)) continue;
    const size_t wrong = 16 + random.next() % 1000;
    if (CALL(aclSetTensorAddr, executor, wrong, c.tensors[i].made, c.tensors[i].data) == 0) {
      fault("%s: index %zu was accepted", c.row->name, wrong);
    }
    CALL(aclGetRecentErrMsg);
  }
}

void execute(Random& random, Case& c, aclOpExecutor* executor) {
  const bool again = random.chance(20), check = random.chance(c.broken ? 5 : 30);
  Memory before;
  if (check) before = memory_of(c);
  if (random.chance(15)) wrong_phase2(random, c, executor);
  if (again && CALL(aclSetAclOpExecutorRepeatable, executor) != ACLNN_SUCCESS) {
    fault("aclSetAclOpExecutorRepeatable: %s", aclGetRecentErrMsg());
  }
  if (again) set_addresses(random, c, executor);
  const aclrtStream stream = random.pick(streams);
  if (phase2(c, executor, stream) != ACLNN_SUCCESS) {
    fault("%s, phase 2, refused a good call: %s", c.row->name, aclGetRecentErrMsg());
  }
  ++run.executed;
  if (!again) must_refuse(c, phase2(c, executor, stream), "an executor for the second time");
  if (CALL(aclrtSynchronizeStream, stream) != ACL_SUCCESS) {
    fault("aclrtSynchronizeStream: %s", aclGetRecentErrMsg());
  }
  if (check) {
    expect(c, before, workspace);
    compare(c, before);
    ++run.verified;
  }
  if (again && phase2(c, executor, stream) != ACLNN_SUCCESS) {
    fault("%s, phase 2, refused a repeatable executor: %s", c.row->name, aclGetRecentErrMsg());
  }
  if (again && random.chance(50)) CALL(aclrtSynchronizeStream, stream);
  if (CALL(aclDestroyAclOpExecutor, executor) != ACLNN_SUCCESS) {  // whether it is alive or was run
    fault("aclDestroyAclOpExecutor: %s", aclGetRecentErrMsg());
  }
  if ((CALL(aclDestroyAclOpExecutor, executor) == ACLNN_SUCCESS) == again) {
    fault("aclDestroyAclOpExecutor, for the second time: %s", aclGetRecentErrMsg());
  }
  if (again) CALL(aclGetRecentErrMsg);
  CALL(aclrtSynchronizeStream, stream);
}

}  // namespace

void start_phases() {
  if (CALL(aclrtSetDevice, 0) != ACL_SUCCESS) fault("aclrtSetDevice: %s", aclGetRecentErrMsg());
  for (size_t i = 1; i < std::size(streams); ++i) {
    if (CALL(aclrtCreateStream, &streams[i]) != ACL_SUCCESS) fault("no stream");
  }
  if (CALL(aclrtMalloc, &workspace, kWorkspace, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) {
    fault("no workspace");
  }
}

void stop_phases() {
  for (size_t i = 1; i < std::size(streams); ++i) CALL(aclrtDestroyStream, streams[i]);
  CALL(aclrtFree, workspace);
  CALL(aclrtResetDevice, 0);
}

void fuzz_phases(Random& random) {
  Case c = good_case(random, random.pick(rows), arenas());
  if (random.chance(60)) break_arguments(random, c);
  create_tensors(c);
  if (random.chance(20)) break_handles(random, c);
  pass_tensors(c);
  aclOpExecutor* executor = phase1(c);
  const bool real = std::all_of(c.tensors.begin(), c.tensors.end(),
                                [](const Given& t) { return t.made == nullptr || is_real(t); });
  if (executor != nullptr && real && c.workspace_size <= kWorkspace && !random.chance(10)) {
    execute(random, c, executor);
  } else if (executor != nullptr) {
    if (CALL(aclDestroyAclOpExecutor, executor) != ACLNN_SUCCESS) fault("not destroyed");
  }
  destroy_made(c);
}

}  // namespace fuzz
