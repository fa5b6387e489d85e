// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace openaclnn::npu {

// From now on a thread that Python ends while it finalises stops, where it would abort the process.
void stop_late_threads();

}  // namespace openaclnn::npu
