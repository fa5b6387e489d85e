// SPDX-License-Identifier: Apache-2.0
// Communicators by name, for operators that communicate (HcclGetCommName gives the name).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/hccl/engine.h"

namespace openaclnn::hccl {

using Connect = std::function<std::shared_ptr<Communicator>()>;

// As long as `own` lives, operators on the device find it. connect() is called by the first that
// communicates, on all ranks.
void keep_for_operators(const std::shared_ptr<Communicator>& own, int32_t device, Connect connect);

// A communicator that an operator names, without connections yet.
struct Member {
  uint32_t rank, ranks;
  std::function<std::shared_ptr<Communicator>()> connected;
};

// Closes the connections of those that ended; call it after `own` ended.
void forget_ended();

// The latest of that name, preferably of the device. Throws Failure if there is none.
Member member_of(const std::string& name, int32_t device);

}  // namespace openaclnn::hccl
