// SPDX-License-Identifier: Apache-2.0
// The address at which other ranks reach this process.
#pragma once

#include <cstdint>
#include <string>

namespace openaclnn::hccl {

// HCCL_IF_IP, or else the local address of the route to the host; loopback without a route.
std::string address_towards(const std::string& host, uint16_t port);

// The local address of the route to MASTER_ADDR; loopback if that is not set.
std::string own_address();

}  // namespace openaclnn::hccl
