// SPDX-License-Identifier: Apache-2.0
// Refusals from ATen's exceptions, in the caller's terms.
#pragma once

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

// The first line of ATen's message. If that is an internal assertion or names what the caller does
// not have: a sentence with the names, dtypes and shapes of the arguments.
Refusal refusal_of(const Call& call, const std::string& text);

// Calls f() and turns what ATen throws into a Refusal.
template <class F>
void explained(const Call& call, F f) {
  try {
    f();
  } catch (const Refusal&) {
    throw;
  } catch (const c10::Error& error) {
    throw refusal_of(call, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {  // overflows, lists that are too long
    throw refusal_of(call, error.what());
  }
}

}  // namespace openaclnn::aten
