// SPDX-License-Identifier: Apache-2.0
// Errors are values inside the core and one sentence at its border.
//
//   if (x == nullptr) return fail(ACLNN_ERR_PARAM_NULLPTR, "%s: x must not be NULL", name);
//
// The sentence is kept for the calling thread until aclGetRecentErrMsg (or the Python binding)
// takes it.
#pragma once

#include <cstdint>
#include <string>

namespace openaclnn {

class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr explicit Status(int32_t code) : code_(code) {}
  constexpr bool ok() const { return code_ == 0; }
  constexpr int32_t code() const { return code_; }

 private:
  int32_t code_ = 0;
};

// Records the sentence of this thread's newest failure and returns its code as a value.
[[gnu::format(printf, 2, 3)]] Status fail(int32_t code, const char* sentence, ...);

// The newest sentence of this thread, without decoration; empty when there is none. Forgets all
// pending ones.
std::string take_sentence();

}  // namespace openaclnn
