// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace openaclnn::npu {

// Makes a thread that Python ends during finalisation block, instead of aborting the process.
void stop_late_threads();

}  // namespace openaclnn::npu
