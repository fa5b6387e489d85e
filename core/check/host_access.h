// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace openaclnn::check {

// Makes a fault at an address of device memory end the process with a report from now on.
void watch_host_access();

}  // namespace openaclnn::check
