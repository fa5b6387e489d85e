// SPDX-License-Identifier: Apache-2.0
#include "core/base/plan_observer.h"
#include "core/support/observer.h"

namespace openaclnn {

constinit Watch<const PlanObserver*> plan_observer = nullptr;

}  // namespace openaclnn
