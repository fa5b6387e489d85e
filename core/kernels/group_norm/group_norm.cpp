// SPDX-License-Identifier: Apache-2.0
// The group norm kernels of an instruction set are an object of their own, because on x86-64 loops
// that need more registers than there are take other flags of GCC.
#include "core/kernels/group_norm/double.h"
#include "core/kernels/group_norm/forward.h"
#include "core/kernels/group_norm/gradient.h"
#include "core/kernels/group_norm/parameters.h"
#include "core/kernels/group_norm/short_forward.h"
#include "core/kernels/group_norm/short_gradient.h"

namespace openaclnn {

extern const GroupNormKernels OPENACLNN_OF_ISA(group_norm_);

const GroupNormKernels OPENACLNN_OF_ISA(group_norm_) = {
    {OPENACLNN_ISA::group_norm_forward, OPENACLNN_ISA::group_norm_forward_short,
     OPENACLNN_ISA::group_norm_sum<OPENACLNN_ISA::Forward>,
     OPENACLNN_ISA::group_norm_finish<OPENACLNN_ISA::Forward>,
     OPENACLNN_ISA::group_norm_store<OPENACLNN_ISA::Forward>},
    {OPENACLNN_ISA::group_norm_backward, OPENACLNN_ISA::group_norm_backward_short,
     OPENACLNN_ISA::group_norm_sum<OPENACLNN_ISA::Gradient>,
     OPENACLNN_ISA::group_norm_finish<OPENACLNN_ISA::Gradient>,
     OPENACLNN_ISA::group_norm_store<OPENACLNN_ISA::Gradient>},
    OPENACLNN_ISA::group_norm_free_slots,
    OPENACLNN_ISA::group_norm_parameter_gradients,
    OPENACLNN_ISA::group_norm_forward_double,
    OPENACLNN_ISA::group_norm_backward_double,
    OPENACLNN_ISA::group_norm_parameters_double,
};

}  // namespace openaclnn
