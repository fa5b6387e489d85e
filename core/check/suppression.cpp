// SPDX-License-Identifier: Apache-2.0
#include "core/check/suppression.h"

#include <atomic>

#include "acl/acl_rt.h"
#include "aclnn/aclnn_base.h"

namespace openaclnn::check {
namespace {

std::atomic<uint32_t> missing_resources = 0;
thread_local bool no_device = false;

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}
bool ends(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
}
bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

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

// Maps the name of an argument to the kind of object that is passed for it.
constexpr Named kArguments[] = {
    {"dst", MissingResource::memory},        {"src", MissingResource::memory},
    {"devPtr", MissingResource::memory},     {"hostPtr", MissingResource::memory},
    {"workspace", MissingResource::memory},  {"stream", MissingResource::stream},
    {"event", MissingResource::event},       {"startEvent", MissingResource::event},
    {"endEvent", MissingResource::event},    {"context", MissingResource::context},
    {"executor", MissingResource::executor}, {"tensor", MissingResource::object},
    {"tensors", MissingResource::object},    {"scalar", MissingResource::object},
    {"array", MissingResource::object},      {"list", MissingResource::object},
};

MissingResource made_by(std::string_view call) {
  for (const Named& maker : kMakers) {
    if (begins(call, maker.part)) return maker.resource;
  }
  if (ends(call, "GetWorkspaceSize")) return MissingResource::executor;
  return begins(call, "aclnn") ? MissingResource::result : MissingResource::nothing;
}

bool needs_device(int32_t code, std::string_view sentence) {
  return code == ACL_ERROR_RT_CONTEXT_NULL || has(sentence, "call aclrtSetDevice first");
}

// Returns dst for "aclrtMemcpy: dst must not be NULL", and nothing for other sentences.
std::string_view null_argument(std::string_view sentence) {
  const size_t colon = sentence.find(": ");
  if (colon == sentence.npos) return {};
  const std::string_view rest = sentence.substr(colon + 2);
  const size_t end = rest.find(" must not be NULL");
  return end == rest.npos ? std::string_view() : rest.substr(0, end);
}

// The argument for which the call got NULL.
MissingResource given_null(std::string_view call, std::string_view sentence) {
  if (has(sentence, "must have data, but")) return MissingResource::memory;
  const std::string_view argument = null_argument(sentence);
  if (argument.empty()) return MissingResource::nothing;
  const bool phase1 = ends(call, "GetWorkspaceSize");
  for (const Named& maker : kMakers) {  // NULL for an output
    const bool made =
        maker.resource != MissingResource::result && maker.resource != MissingResource::device;
    if (made && begins(call, maker.part)) return MissingResource::nothing;
  }
  if (phase1 && (argument == "workspaceSize" || argument == "executor"))
    return MissingResource::nothing;
  for (const Named& known : kArguments) {
    if (argument == known.part) return known.resource;
  }
  return phase1 ? MissingResource::object
                : MissingResource::nothing;  // a tensor or scalar, by the name that it has there
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
    default: return MissingResource::object;
  }
}

bool note_refusal(std::string_view call, int32_t code, std::string_view sentence) {
  const bool unset = needs_device(code, sentence);
  const bool reset = begins(call, "aclrtResetDevice") && ends(sentence, "but it never was");
  const MissingResource missing = given_null(call, sentence);
  const bool follow = ((unset || reset) && is_consequence(MissingResource::device)) ||
                      (missing != MissingResource::nothing && is_consequence(missing));
  const MissingResource made = made_by(call);
  if (unset || made == MissingResource::device) no_device = true;
  if (made != MissingResource::device) {
    missing_resources.fetch_or(static_cast<uint32_t>(made), std::memory_order_relaxed);
  }
  return follow;
}

void note_device() { no_device = false; }

const char* advice_for(std::string_view call, int32_t code, std::string_view sentence) {
  if (needs_device(code, sentence)) {
    return "call aclrtSetDevice before the first call that needs a device, in each thread that "
           "makes one.";
  }
  if (!null_argument(sentence).empty()) {
    return "give the argument that is named; where another call should have made it, look at the "
           "status of that call.";
  }
  switch (code) {
    case ACL_ERROR_RT_MEMORY_ALLOCATION:
      return "free what is no longer used, or ask for less; the call did nothing.";
    case ACL_ERROR_RT_INVALID_DEVICEID:
      return "ask aclrtGetDeviceCount how many devices there are; OPENACLNN_DEVICES sets it here.";
    case ACL_ERROR_RT_FEATURE_NOT_SUPPORT:
    case ACL_ERROR_API_NOT_SUPPORT:
      return "do without it, as the sentence says; the call did nothing.";
    case ACLNN_ERR_PARAM_INVALID:
      return "change what the sentence names; `openaclnn ops` with the name of an operator shows "
             "what it takes. The call did nothing.";
    default: break;
  }
  return begins(call, "aclrtResetDevice")
             ? "reset a device as often as it was set, and no more."
             : "make true what the sentence asks for; the call did nothing.";
}

}  // namespace openaclnn::check
