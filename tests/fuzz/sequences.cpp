// SPDX-License-Identifier: Apache-2.0
// Some hundred calls of the runtime in any order, with handles that are alive, dead or never were;
// then everything is destroyed, and nothing may be left.
#include <algorithm>
#include <cstring>
#include <string>

#include "world.h"

namespace fuzz {

void* Pool::add(void* handle) {
  if (handle != nullptr) {
    live.push_back(handle);
    std::erase(dead, handle);
  }
  return handle;
}

bool Pool::has(const void* handle) const {
  return std::find(live.begin(), live.end(), handle) != live.end();
}

void Pool::kill(void* handle) {
  std::erase(live, handle);
  dead.push_back(handle);
}

Pick World::pick(const Pool& pool) {
  const uint64_t kind = random.below(100);
  void* handle = nullptr;
  if (kind < 82 && !pool.live.empty()) {
    handle = random.pick(pool.live);
  } else if (kind < 90 && !pool.dead.empty()) {
    handle = random.pick(pool.dead);
  } else if (kind < 94) {
    handle = garbage(random);
  } else if (kind < 96) {
    const Pool& other = any_pool();
    if (!other.live.empty()) handle = random.pick(other.live);
  }
  return {handle, pool.has(handle)};
}

Pool& World::any_pool() {
  Pool* const pools[] = {&streams,     &contexts,     &device_memory, &host_memory, &tensors,
                         &scalars,     &executors,    &events,        &int_arrays,  &float_arrays,
                         &bool_arrays, &tensor_lists, &scalar_lists,  &physical,    &reservations};
  return *random.pick(pools);
}

bool judge(const char* call, int status, Must must) {
  if (status == 0) {
    if (must == Must::fail) fault("%s accepted what it has to refuse", call);
    return true;
  }
  const std::string message = CALL(aclGetRecentErrMsg);
  run.last = call;
  if (message.find(std::string(call) + ": ") == std::string::npos) {
    fault("%s returned %d with the message \"%s\"", call, status, message.c_str());
  }
  if (must == Must::pass) fault("%s refused a good call: %s", call, message.c_str());
  return false;
}

namespace {

template <class Call>
void destroy_all(Pool& pool, const char* name, Call call) {
  while (!pool.live.empty()) {
    void* handle = pool.live.back();
    ++run.calls;
    run.last = name;
    judge(name, call(handle), Must::pass);
    pool.kill(handle);
  }
}

}  // namespace

// In an order that programs use too: devices first, late frees after.
void destroy_everything(World& w) {
  JUDGE(Must::pass, aclrtSetDevice, 0);
  settle(w);
  leave_reports(w);
  destroy_all(w.contexts, "aclrtDestroyContext", aclrtDestroyContext);
  JUDGE(Must::pass, aclrtResetDeviceForce, 0);
  destroy_all(w.streams, "aclrtDestroyStream", aclrtDestroyStream);
  destroy_all(w.events, "aclrtDestroyEvent", aclrtDestroyEvent);
  destroy_all(w.device_memory, "aclrtFree", aclrtFree);
  destroy_all(w.host_memory, "aclrtFreeHost", aclrtFreeHost);
  destroy_mappings(w);
  const auto object = [&](Pool& pool, const char* name, auto function) {
    destroy_all(pool, name, [function](void* handle) {
      return function(
          static_cast<decltype([]<class T>(int (*)(T*)) -> T* { return nullptr; }(function))>(
              handle));
    });
  };
  object(w.executors, "aclDestroyAclOpExecutor", aclDestroyAclOpExecutor);
  object(w.tensor_lists, "aclDestroyTensorList", aclDestroyTensorList);
  object(w.scalar_lists, "aclDestroyScalarList", aclDestroyScalarList);
  object(w.tensors, "aclDestroyTensor", aclDestroyTensor);
  object(w.scalars, "aclDestroyScalar", aclDestroyScalar);
  object(w.int_arrays, "aclDestroyIntArray", aclDestroyIntArray);
  object(w.float_arrays, "aclDestroyFloatArray", aclDestroyFloatArray);
  object(w.bool_arrays, "aclDestroyBoolArray", aclDestroyBoolArray);
}

void fuzz_sequence(Random& random) {
  stop_phases();
  World world(random);
  JUDGE(Must::pass, aclrtSetDevice, 0);
  std::vector<const Action*> actions;  // each as often as it weighs
  for (const auto* list :
       {&object_actions, &runtime_actions, &event_actions, &memory_actions, &table_actions}) {
    for (const Action& action : *list) actions.insert(actions.end(), action.weight, &action);
  }
  for (uint64_t steps = random.below(random.chance(10) ? 2000 : 200); steps > 0; --steps) {
    random.pick(actions)->run(world);
  }
  destroy_everything(world);
  start_phases();
}

}  // namespace fuzz
