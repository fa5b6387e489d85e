// SPDX-License-Identifier: Apache-2.0
// A report tells one mistake: what it is, of which object, where it and what it needs to know were
// made, and what to do.
#pragma once

#include "core/check/stack.h"
#include "core/check/text.h"
#include "core/runtime/status.h"

namespace openaclnn::check {

// A place that helps to understand the mistake; role and call make its heading, as in
// "memory made by aclrtMalloc".
struct Place {
  const char* role;
  const char* call;  // may be nullptr
  Stack stack;
  const Caller* caller = nullptr;  // in place of the stack, where another language made the call
};

struct Report {
  static constexpr int kPlaces = 5;

  explicit Report(const char* kind_) : kind(kind_) {}
  Report& at(const char* role, const char* call, const Stack& stack) {
    if (places < kPlaces && stack.count > 0) place[places++] = {role, call, stack};
    return *this;
  }
  // The caller has to live until the report is told.
  Report& at(const char* role, const char* call, const Caller& caller) {
    if (places < kPlaces) place[places++] = {role, call, {}, &caller};
    return *this;
  }

  const char* kind;  // a word of docs/check_mode.md
  Sentence what;     // what is wrong, and with which object; one or more sentences
  Place place[kPlaces];
  int places = 0;
  const char* advice = "";
  bool unless_told = false;  // nothing to add where another mistake of the same call was told
  bool follows = false;      // an earlier mistake is the cause: one line under it, and not counted
};

// Reads OPENACLNN_CHECK_EXIT_CODE and OPENACLNN_CHECK_JSON.
void prepare_reports();

// Tells it, unless one of its kind was told for the same places. In a signal handler too.
void tell(const Report& report);

int reports_told();  // mistakes
int consequences_told();
int exit_code();  // of a process that made a mistake

}  // namespace openaclnn::check
