// SPDX-License-Identifier: Apache-2.0
// Refusals from ATen's exceptions, in the caller's terms.
#pragma once

#include "core/torch/aten/call.h"

namespace openaclnn::aten {

// ATen's own first line; but where that is an assertion within, or speaks of things that the caller
// does not have, a sentence with the names, dtypes and shapes of the arguments.
Refusal refusal_of(const Call& call, const std::exception& error);
Refusal refusal_of(const Call& call, const std::string& text);

// Calls f() and turns what ATen throws into a Refusal.
template <class F>
void explained(const Call& call, F f) {
  try {
    f();
  } catch (const Refusal&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    throw refusal_of(call, error);
  }
}

}  // namespace openaclnn::aten
