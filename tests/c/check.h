// SPDX-License-Identifier: Apache-2.0
// These checks print the failing line and go on; main ends with `return check_result();`. A text
// check takes the pending messages, so each sentence can be checked once.
#pragma once

#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>

#include "acl/acl.h"

inline int check_failures = 0;

inline int check_result() { return check_failures == 0 ? 0 : 1; }

inline void check_fail(const char* file, int line, const std::string& what) {
  ++check_failures;
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
}

template <class A, class B>
void check_equal(const char* file, int line, const char* text, const A& got, const B& want) {
  if (got == want) return;
  std::ostringstream what;
  what << text << ": got " << got << ", want " << want;
  check_fail(file, line, what.str());
}

inline void check_text(const char* file, int line, const std::string& want) {
  const std::string got = aclGetRecentErrMsg();
  if (got.find(want) != std::string::npos) return;
  check_fail(file, line, "\"" + want + "\" not in: " + got);
}

#define CHECK(x) ((x) ? void() : check_fail(__FILE__, __LINE__, #x))
#define CHECK_EQ(x, want) check_equal(__FILE__, __LINE__, #x, (x), (want))
#define CHECK_TEXT(want) check_text(__FILE__, __LINE__, (want))
// Checks the code, and a part of the sentence it leaves.
#define CHECK_FAILS(x, code, sentence) (CHECK_EQ(x, code), CHECK_TEXT(sentence))
