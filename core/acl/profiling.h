// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace openaclnn {

// Whether a program has started profiling and not stopped it.
bool profiling_started();

}  // namespace openaclnn
