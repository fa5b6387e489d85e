// SPDX-License-Identifier: Apache-2.0
// Under which address other ranks reach this process.
#pragma once

#include <cstdint>
#include <string>

namespace openaclnn::hccl {

// The address of this machine on the way to the host; that of the loopback if there is no way.
std::string address_towards(const std::string& host, uint16_t port);

// HCCL_IF_IP, or the address towards MASTER_ADDR, or without either that of the loopback.
std::string own_address();

}  // namespace openaclnn::hccl
