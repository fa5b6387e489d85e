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
    case ACL_ERROR_INVALID_PARAM:
      return call == "aclsysGetCANNVersion";  // which packages are there
    case ACL_ERROR_RT_SYSPARAMOPT_NOT_SET: return call == "aclrtCtxGetSysParamOpt";
    default: return false;
  }
}

// Returns the function that the program called. Operators share an inner function, and their
// failures name the operator.
std::string_view name_of_call(const Stack& here, std::string_view failed_call) {
  if (here.entry != nullptr) return here.entry;
  return is_public_name(failed_call) ? failed_call : "a call";
}

}  // namespace

void failed(const ReportedFailure& failure, const Caller* caller) {
  used();
  if (caller != nullptr && caller->file[0] == '\0') caller = nullptr;
  const Stack here = caller == nullptr ? stack_here() : Stack{};
  const std::string_view name = name_of_call(here, failure.call);
  if (is_expected(name, failure.code)) return;
  Text<128> call;  // as a string of C
  call.add(name.data(), name.size());
  Report report("refused");
  report.unless_reported = true;
  report.is_consequence = note_refusal(name, failure.cause);
  report.what.add(call.data()).add(" returned ");
  if (failure.code == 0) {
    report.what.add("NULL");
  } else {
    report.what.number(static_cast<uint64_t>(failure.code));
  }
  report.what.add(": ");
  // The operator of a phase 1 is named by the call; the function behind another call is not.
  if (!failure.call.empty() && !name.starts_with(failure.call)) {
    report.what.add(failure.call.data(), failure.call.size()).add(": ");
  }
  std::string_view why = failure.sentence;
  if (why.ends_with('.')) why.remove_suffix(1);  // as the sentences of ATen do
  report.what.add(why.data(), why.size()).add(".");
  if (caller == nullptr) {
    report.at("here", call.data(), here);
  } else {
    report.at("here", call.data(), *caller);
  }
  report.advice = advice_for(name, failure.cause);
  emit(report);
}

}  // namespace openaclnn::check
