// SPDX-License-Identifier: Apache-2.0
#include "core/support/observer.h"

namespace openaclnn {

constinit Watch<const Observer*> observer = nullptr;
constinit Watch<bool> watched = false;

}  // namespace openaclnn
