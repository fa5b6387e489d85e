// SPDX-License-Identifier: Apache-2.0
#include "core/check/suppression.h"

#include <atomic>

#include "acl/acl_rt.h"
#include "aclnn/aclnn_base.h"

namespace openaclnn::check {
namespace {

std::atomic<uint32_t> missing_resources = 0;
thread_local bool no_device = false;

struct Named {
  std::string_view part;
  MissingResource resource;
};

// Maps the beginning of the name of a call to the kind of object that it makes.
constexpr Named kMakers[] = {
    {"aclrtSetDevice", MissingResource::device},      {"aclrtMalloc", MissingResource::memory},
    {"aclrtCreateStream", MissingResource::stream},   {"aclrtCreateEvent", MissingResource::event},
    {"aclrtCreateContext", MissingResource::context}, {"aclCreate", MissingResource::object},
    {"aclrtMemcpy", MissingResource::result},         {"aclrtMemset", MissingResource::result},
};

MissingResource made_by(std::string_view call) {
  for (const Named& maker : kMakers) {
    if (call.starts_with(maker.part)) return maker.resource;
  }
  if (call.ends_with("GetWorkspaceSize")) return MissingResource::executor;
  return call.starts_with("aclnn") ? MissingResource::result : MissingResource::nothing;
}

// What a call before should have given the refused one.
MissingResource lacked_by(const Cause& cause) {
  switch (cause.reason) {
    case Reason::no_context: return MissingResource::device;
    case Reason::call_missing:  // aclrtResetDevice of a device that was never set
      return cause.subject == ObjectKind::device ? MissingResource::device
                                                 : MissingResource::nothing;
    case Reason::null_argument: return resource_of(cause.subject);
    default: return MissingResource::nothing;
  }
}

}  // namespace

bool is_consequence(MissingResource resource) {
  return resource == MissingResource::device ? no_device
                                             : (missing_resources.load(std::memory_order_relaxed) &
                                                static_cast<uint32_t>(resource)) != 0;
}

MissingResource resource_of(ObjectKind kind) {
  if (is_memory(kind)) return MissingResource::memory;
  switch (kind) {
    case ObjectKind::stream: return MissingResource::stream;
    case ObjectKind::event: return MissingResource::event;
    case ObjectKind::context: return MissingResource::context;
    case ObjectKind::executor: return MissingResource::executor;
    case ObjectKind::none: return MissingResource::nothing;
    case ObjectKind::device: return MissingResource::device;
    default: return MissingResource::object;
  }
}

bool note_refusal(std::string_view call, const Cause& cause) {
  const MissingResource lacked = lacked_by(cause);
  const bool follows = lacked != MissingResource::nothing && is_consequence(lacked);
  const MissingResource made = made_by(call);
  if (cause.reason == Reason::no_context || made == MissingResource::device) no_device = true;
  if (made != MissingResource::device) {
    missing_resources.fetch_or(static_cast<uint32_t>(made), std::memory_order_relaxed);
  }
  return follows;
}

void note_device() { no_device = false; }

const char* advice_for(std::string_view call, const Cause& cause) {
  const bool of_device = cause.subject == ObjectKind::device;
  switch (cause.reason) {
    case Reason::no_context:
      return "call aclrtSetDevice before the first call that needs a device, in each thread that "
             "makes one.";
    case Reason::null_argument:
      return "give the argument that is named; where another call should have made it, look at the "
             "status of that call.";
    case Reason::wrong_dtype:
    case Reason::wrong_shape:
    case Reason::wrong_memory:
    case Reason::wrong_value:
      if (of_device)
        return "ask aclrtGetDeviceCount how many devices there are; OPENACLNN_DEVICES sets it "
               "here.";
      if (call.starts_with("aclnn"))
        return "correct what the message names; `openaclnn ops` with the name of an operator shows "
               "what it takes. The call did nothing.";
      if (call.starts_with("Hccl"))
        return "correct what the message names, in every rank that makes the call; it did nothing.";
      break;
    case Reason::already_done:
    case Reason::call_missing:
      return of_device ? "reset a device as often as it was set, and no more."
                       : "do first what the message asks for; this call did nothing.";
    case Reason::out_of_memory:
    case Reason::no_resource:
      return "free what is no longer used, or ask for less; the call did nothing.";
    case Reason::not_supported: return "not supported here: avoid this call; it did nothing.";
    case Reason::missing_library: return "install what the message names; the call did nothing.";
    case Reason::internal: return "look at the message; the call did nothing.";
    case Reason::dead_handle:
    case Reason::foreign_handle:
    case Reason::deadlock:
    case Reason::timed_out:
    case Reason::unreachable: break;
  }
  return "correct what the message names; the call did nothing.";
}

}  // namespace openaclnn::check
