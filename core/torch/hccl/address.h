// SPDX-License-Identifier: Apache-2.0
// Under which address other ranks reach this process.
#pragma once

#include <cstdint>
#include <string>

namespace openaclnn::hccl {

// HCCL_IF_IP, or else the address of this machine on the way to the host; that of the loopback if
// there is no way.
std::string address_towards(const std::string& host, uint16_t port);

// The address towards MASTER_ADDR, or towards the loopback if that is not set.
std::string own_address();

}  // namespace openaclnn::hccl
