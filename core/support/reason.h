// SPDX-License-Identifier: Apache-2.0
// Why a call was refused, for code; the sentence beside it is for people, and nothing parses it.
#pragma once

#include <cstdint>

namespace openaclnn {

enum class Reason : uint8_t {
  internal,
  null_argument,  // or a tensor without memory
  wrong_value,    // outside its range, or none of the accepted ones
  wrong_dtype,
  wrong_shape,     // or rank
  wrong_memory,    // too small, misaligned, overlapping, freed or not mapped
  dead_handle,     // destroyed, consumed or never created
  foreign_handle,  // of another context, device or operator, or created in another way
  already_done,
  call_missing,  // another call must come first
  no_context,    // no device is set for the thread
  deadlock,      // a task waits for what it is part of, or ends it
  timed_out,
  unreachable,  // another process does not answer, or has failed
  out_of_memory,
  no_resource,  // no handle or thread is left
  not_supported,
  missing_library,
};

// What a program makes, uses and ends.
enum class ObjectKind : uint8_t {
  none,  // a number, a string, a pointer to a result
  device,
  tensor,
  scalar,
  int_array,
  float_array,
  bool_array,
  tensor_list,
  scalar_list,
  executor,
  context,
  stream,
  event,
  notify,
  graph,
  physical_memory,  // a handle of aclrtMallocPhysical
  device_memory,
  host_memory,
  reserved_memory,  // addresses without memory
  mapped_memory,
};

// The C type, or what a sentence calls memory.
constexpr const char* name_of(ObjectKind kind) {
  constexpr const char* kNames[] = {
      "argument",          "device",        "aclTensor",     "aclScalar",       "aclIntArray",
      "aclFloatArray",     "aclBoolArray",  "aclTensorList", "aclScalarList",   "aclOpExecutor",
      "aclrtContext",      "aclrtStream",   "aclrtEvent",    "aclrtNotify",     "aclmdlRI",
      "aclrtDrvMemHandle", "device memory", "host memory",   "reserved memory", "mapped memory"};
  return kNames[static_cast<int>(kind)];
}

constexpr bool is_memory(ObjectKind kind) { return kind >= ObjectKind::device_memory; }

// Objects that only a device can give; memory has a call of the observer's for itself.
constexpr bool needs_device(ObjectKind kind) {
  return kind >= ObjectKind::context && kind <= ObjectKind::physical_memory;
}

struct Cause {
  constexpr Cause(Reason why = Reason::internal, ObjectKind what = ObjectKind::none)
      : reason(why), subject(what) {}
  Reason reason;
  ObjectKind subject;
};

}  // namespace openaclnn
