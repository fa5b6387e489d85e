// SPDX-License-Identifier: Apache-2.0
// A report describes one mistake: what is wrong with which object, where the mistake and the
// objects involved were made, and what to do about it.
#pragma once

#include "core/check/stack.h"
#include "core/check/text.h"
#include "core/support/status.h"

namespace openaclnn::check {

// A call site that explains the mistake; role and call are its heading: "memory made by
// aclrtMalloc".
struct CallSite {
  const char* role;
  const char* call;  // may be nullptr
  Stack stack;
  const Caller* caller = nullptr;  // instead of the stack, for calls from another language
};

struct Report {
  static constexpr int kCallSites = 5;

  explicit Report(const char* kind_) : kind(kind_) {}
  Report& at(const char* role, const char* call, const Stack& stack) {
    if (sites < kCallSites && stack.count > 0) site[sites++] = {role, call, stack};
    return *this;
  }
  // Keeps a pointer: the caller must outlive the report.
  Report& at(const char* role, const char* call, const Caller& caller) {
    if (sites < kCallSites) site[sites++] = {role, call, {}, &caller};
    return *this;
  }

  const char* kind;  // a heading of docs/reference/mistakes.md
  Sentence what;     // what is wrong, and with which object; one or more sentences
  CallSite site[kCallSites];
  int sites = 0;
  const char* advice = "";
  bool unless_reported = false;  // dropped if another mistake of the same call was reported
  bool is_consequence =
      false;  // an earlier mistake is the cause: one line under it, and not counted
};

// Reads OPENACLNN_CHECK_EXIT_CODE and OPENACLNN_CHECK_JSON.
void prepare_reports();

// Writes the report, unless one of its kind was written for the same call sites. Works in a signal
// handler, too.
void emit(const Report& report);

int mistakes_reported();  // the number of mistakes reported so far
void print_total();       // the last line, before it a hint where the program has no lines
int exit_code();          // of a process that made a mistake

}  // namespace openaclnn::check
