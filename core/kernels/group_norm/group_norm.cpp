// SPDX-License-Identifier: Apache-2.0
// The group norm kernels of an instruction set are an object of their own, because on x86-64 loops
// that need more registers than there are take other flags of GCC.
#include "core/kernels/group_norm/double.h"
#include "core/kernels/group_norm/short_forward.h"
#include "core/kernels/group_norm/short_gradient.h"
#include "core/kernels/group_norm/split.h"

namespace openaclnn {

extern const GroupNormKernels OPENACLNN_OF_ISA(group_norm_);

const GroupNormKernels OPENACLNN_OF_ISA(group_norm_) = {
    OPENACLNN_ISA::group_norm_forward,
    OPENACLNN_ISA::group_norm_forward_short,
    OPENACLNN_ISA::group_norm_statistics,
    OPENACLNN_ISA::group_norm_normalise,
    OPENACLNN_ISA::group_norm_mean_and_rstd,
    OPENACLNN_ISA::group_norm_free_slots,
    OPENACLNN_ISA::group_norm_backward,
    OPENACLNN_ISA::group_norm_backward_short,
    OPENACLNN_ISA::group_norm_sums,
    OPENACLNN_ISA::group_norm_split_gradient,
    OPENACLNN_ISA::group_norm_coefficients,
    OPENACLNN_ISA::group_norm_parameter_gradients,
    OPENACLNN_ISA::group_norm_split_parameter_gradients,
    OPENACLNN_ISA::group_norm_forward_double,
    OPENACLNN_ISA::group_norm_backward_double,
    OPENACLNN_ISA::group_norm_parameters_double,
};

}  // namespace openaclnn
