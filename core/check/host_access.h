// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace openaclnn::check {

// Installs the handler: a fault at a device address ends the process with a report.
void watch_host_access();

}  // namespace openaclnn::check
