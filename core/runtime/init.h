// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace openaclnn {

// The configuration of aclInit asks for the tensors of operators to be written to files.
bool wants_dump();

}  // namespace openaclnn
