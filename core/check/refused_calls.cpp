// SPDX-License-Identifier: Apache-2.0
// Reports refused calls: a program that ignores the status continues with results that were never
// computed.
#include <string_view>

#include "acl/acl_rt.h"
#include "core/check/suppression.h"
#include "core/check/state.h"

namespace openaclnn::check {
namespace {

// Statuses that are the regular outcome of a query.
bool is_expected(std::string_view call, int32_t code) {
  switch (code) {
    case ACL_ERROR_REPEAT_INITIALIZE:
    case ACL_ERROR_WAIT_CALLBACK_TIMEOUT:
    case ACL_ERROR_RT_STREAM_SYNC_TIMEOUT:
    case ACL_ERROR_RT_EVENT_SYNC_TIMEOUT:
    case ACL_ERROR_RT_WAIT_TIMEOUT: return true;
    case ACL_ERROR_THREAD_NOT_SUBSCRIBE:  // its loop begins before and ends after the subscription
      return call == "aclrtProcessReport";
    case ACL_ERROR_RT_CONTEXT_NULL:  // programs ask whether there is one
      return call == "aclrtGetDevice" || call == "aclrtGetCurrentContext";
    case ACL_ERROR_RT_SYSPARAMOPT_NOT_SET: return call == "aclrtCtxGetSysParamOpt";
    default: return false;
  }
}

// Returns the function that the program called. Operators share an inner function; their name is at
// the head of the sentence.
std::string_view name_of_call(const Stack& here, std::string_view sentence) {
  if (here.entry != nullptr && std::strncmp(here.entry, "acl", 3) == 0) return here.entry;
  const size_t colon = sentence.find(':');
  return sentence.substr(0, 3) == "acl" && colon != sentence.npos ? sentence.substr(0, colon)
                                                                  : "a call";
}

// Returns the sentence without the name of the call, or of the operator whose phase 1 it is.
std::string_view without_name(std::string_view sentence, std::string_view call) {
  const size_t colon = sentence.find(": ");
  const bool named = colon != sentence.npos && call.substr(0, colon) == sentence.substr(0, colon);
  return named ? sentence.substr(colon + 2) : sentence;
}

}  // namespace

void failed(int32_t code, const char* sentence, const Caller* caller) {
  used();
  if (caller != nullptr && caller->file[0] == '\0') caller = nullptr;
  const Stack here = caller == nullptr ? stack_here() : Stack{};
  const std::string_view name = name_of_call(here, sentence);
  if (is_expected(name, code)) return;
  Text<128> call;  // as a string of C
  call.add(name.data(), name.size());
  Report report("refused");
  report.unless_reported = true;
  report.is_consequence = note_refusal(name, code, sentence);
  report.what.add(call.data()).add(" returned ");
  if (code == 0) {
    report.what.add("NULL");
  } else {
    report.what.number(static_cast<uint64_t>(code));
  }
  std::string_view why = without_name(sentence, name);
  if (why.ends_with('.')) why.remove_suffix(1);  // as the sentences of ATen do
  report.what.add(": ").add(why.data(), why.size()).add(".");
  if (caller == nullptr) {
    report.at("here", call.data(), here);
  } else {
    report.at("here", call.data(), *caller);
  }
  report.advice = advice_for(name, code, sentence);
  emit(report);
}

}  // namespace openaclnn::check
