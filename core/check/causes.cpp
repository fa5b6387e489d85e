// SPDX-License-Identifier: Apache-2.0
#include "core/check/causes.h"

#include <atomic>

#include "acl/acl_rt.h"
#include "aclnn/aclnn_base.h"

namespace openaclnn::check {
namespace {

std::atomic<uint32_t> lacking = 0;
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
  Lack lack;
};

// Maps the beginning of the name of a call to the kind of object that it makes.
constexpr Named kMakers[] = {
    {"aclrtSetDevice", Lack::device},      {"aclrtMalloc", Lack::memory},
    {"aclrtCreateStream", Lack::stream},   {"aclrtCreateEvent", Lack::event},
    {"aclrtCreateContext", Lack::context}, {"aclCreate", Lack::object},
    {"aclrtMemcpy", Lack::result},         {"aclrtMemset", Lack::result},
};

// Maps the name of an argument to the kind of object that is passed for it.
constexpr Named kArguments[] = {
    {"dst", Lack::memory},      {"src", Lack::memory},        {"devPtr", Lack::memory},
    {"hostPtr", Lack::memory},  {"workspace", Lack::memory},  {"stream", Lack::stream},
    {"event", Lack::event},     {"startEvent", Lack::event},  {"endEvent", Lack::event},
    {"context", Lack::context}, {"executor", Lack::executor}, {"tensor", Lack::object},
    {"tensors", Lack::object},  {"scalar", Lack::object},     {"array", Lack::object},
    {"list", Lack::object},
};

Lack made_by(std::string_view call) {
  for (const Named& maker : kMakers) {
    if (begins(call, maker.part)) return maker.lack;
  }
  if (ends(call, "GetWorkspaceSize")) return Lack::executor;
  return begins(call, "aclnn") ? Lack::result : Lack::nothing;
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
Lack given_null(std::string_view call, std::string_view sentence) {
  if (has(sentence, "must have data, but")) return Lack::memory;
  const std::string_view argument = null_argument(sentence);
  if (argument.empty()) return Lack::nothing;
  const bool phase1 = ends(call, "GetWorkspaceSize");
  for (const Named& maker : kMakers) {  // NULL for what it should make
    const bool made = maker.lack != Lack::result && maker.lack != Lack::device;
    if (made && begins(call, maker.part)) return Lack::nothing;
  }
  if (phase1 && (argument == "workspaceSize" || argument == "executor")) return Lack::nothing;
  for (const Named& known : kArguments) {
    if (argument == known.part) return known.lack;
  }
  return phase1 ? Lack::object
                : Lack::nothing;  // a tensor or scalar, by the name that it has there
}

}  // namespace

bool follows(Lack lack) {
  return lack == Lack::device
             ? no_device
             : (lacking.load(std::memory_order_relaxed) & static_cast<uint32_t>(lack)) != 0;
}

Lack lack_of(const char* thing) {
  const std::string_view name = thing;
  if (has(name, "memory")) return Lack::memory;
  if (name == "aclrtStream") return Lack::stream;
  if (name == "aclrtEvent") return Lack::event;
  if (name == "aclrtContext") return Lack::context;
  return name == "aclOpExecutor" ? Lack::executor : Lack::object;
}

bool note_refusal(std::string_view call, int32_t code, std::string_view sentence) {
  const bool unset = needs_device(code, sentence);
  const bool reset = begins(call, "aclrtResetDevice") && ends(sentence, "but it never was");
  const Lack missing = given_null(call, sentence);
  const bool follow =
      ((unset || reset) && follows(Lack::device)) || (missing != Lack::nothing && follows(missing));
  const Lack made = made_by(call);
  if (unset || made == Lack::device) no_device = true;
  if (made != Lack::device) {
    lacking.fetch_or(static_cast<uint32_t>(made), std::memory_order_relaxed);
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
