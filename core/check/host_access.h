// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace openaclnn::check {

// From now on, a fault at an address of device memory ends the process with a report.
void watch_host_access();

}  // namespace openaclnn::check
