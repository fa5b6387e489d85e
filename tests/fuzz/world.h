// SPDX-License-Identifier: Apache-2.0
// What a sequence of runtime calls has made so far, and how its next handle is chosen.
#pragma once

#include <map>
#include <vector>

#include "fuzz.h"

namespace fuzz {

struct Pool {
  std::vector<void*> live, dead;

  void* add(void* handle);
  bool has(const void* handle) const;
  void kill(void* handle);
};

struct Pick {
  void* handle;
  bool live;
};

struct Mapped {
  size_t size;
  uint64_t memory;  // which; handles are given again
};

struct World {
  explicit World(Random& numbers) : random(numbers) {}

  Random& random;
  Pool streams, contexts, device_memory, host_memory, tensors, scalars, executors, events;
  Pool physical, reservations;
  Pool int_arrays, float_arrays, bool_arrays, tensor_lists, scalar_lists;
  std::map<void*, size_t> sizes;                      // of memory, as asked for
  std::map<char*, Mapped> mappings;                   // of physical memory in reservations
  std::map<void*, uint64_t> serials;                  // of physical memory
  std::map<void*, uint64_t> exported;                 // of physical memory: the number
  std::map<void*, std::vector<const void*>> members;  // of lists
  std::map<void*, const Row*> makers;                 // of executors
  std::map<void*, bool> repeatable;                   // executors
  std::map<void*, bool> consumed;                     // executors that are gone: by phase 2
  std::vector<void*> unawaited;                       // streams that synchronising passes by
  bool pending = false;                               // streams may still use memory

  // Mostly a live one, sometimes one of the past, one that never was, or NULL.
  Pick pick(const Pool& pool);
  Pool& any_pool();
};

// What a call may return.
enum class Must { pass, fail, either };

// Whether the call passed. A refusal has to leave a sentence that starts with the call's name.
bool judge(const char* call, int status, Must must);

// What it must do is found out before the call is made: finding out may make calls, which forget
// the sentence of this one.
#define JUDGE(must, function, ...) \
  [&](Must first) { return judge(#function, CALL(function, __VA_ARGS__), first); }(must)

inline Must must_fail_unless(bool live) { return live ? Must::either : Must::fail; }
inline Must must_pass_if(bool live) { return live ? Must::pass : Must::fail; }

struct Action {
  unsigned weight;
  void (*run)(World& world);
};

extern const std::vector<Action> object_actions;   // tensors, scalars, arrays, lists, executors
extern const std::vector<Action> runtime_actions;  // devices, contexts, streams, memory
extern const std::vector<Action> event_actions;    // events, callbacks, parameters
extern const std::vector<Action> memory_actions;   // reserved addresses, mappings, peers
extern const std::vector<Action> table_actions;    // any other function, arguments by type

bool has_context();
// Waits for all work, after which memory may go; false when nobody can wait now.
bool settle(World& world);

aclOpExecutor* plan_something(World& world);  // phase 1 of a random row on memory that stays
void leave_reports(World& world);
void destroy_mappings(World& world);
void destroy_everything(World& world);

}  // namespace fuzz
