// SPDX-License-Identifier: Apache-2.0
// The group norm kernels of an instruction set.
#include "core/kernels/group_norm/exact.h"
#include "core/kernels/group_norm/forward.h"
#include "core/kernels/group_norm/gradient.h"
#include "core/kernels/group_norm/parameters.h"
#include "core/kernels/group_norm/small_spatial_forward.h"
#include "core/kernels/group_norm/small_spatial_gradient.h"

namespace openaclnn {

using namespace OPENACLNN_ISA;

extern const GroupNormKernels OPENACLNN_OF_ISA(group_norm_);

const GroupNormKernels OPENACLNN_OF_ISA(group_norm_) = {
    {group_norm_forward, group_norm_forward_small_spatial, group_norm_sum<Forward>,
     group_norm_finish<Forward>, group_norm_store<Forward>},
    {group_norm_backward, group_norm_backward_small_spatial, group_norm_sum<Gradient>,
     group_norm_finish<Gradient>, group_norm_store<Gradient>},
    group_norm_free_slots,
    group_norm_parameter_gradients,
    group_norm_forward_double,
    group_norm_backward_double,
};

}  // namespace openaclnn
