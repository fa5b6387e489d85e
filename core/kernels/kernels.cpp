// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set: OPENACLNN_ISA is v2, v3, v4 (x86-64 levels) or native
// (aarch64).
#include "core/kernels/kernels.h"

#include "core/kernels/activation.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/elu.h"
#include "core/kernels/formula.h"
#include "core/kernels/group_norm_short_forward.h"
#include "core/kernels/group_norm_short_grad.h"
#include "core/kernels/group_norm_split.h"
#include "core/kernels/logit.h"
#include "core/kernels/packed.h"

#define OPENACLNN_TEXT_(x) #x
#define OPENACLNN_TEXT(x) OPENACLNN_TEXT_(x)
#define OPENACLNN_JOIN_(a, b) a##b
#define OPENACLNN_JOIN(a, b) OPENACLNN_JOIN_(a, b)

namespace openaclnn {

extern const Kernels OPENACLNN_JOIN(kernels_, OPENACLNN_ISA);

const Kernels OPENACLNN_JOIN(kernels_, OPENACLNN_ISA) = {
    OPENACLNN_TEXT(OPENACLNN_ISA),
    OPENACLNN_ISA::elementwise<float>,
    OPENACLNN_ISA::elementwise<double>,
    {OPENACLNN_ISA::group_norm_forward, OPENACLNN_ISA::group_norm_forward_short,
     OPENACLNN_ISA::group_norm_statistics, OPENACLNN_ISA::group_norm_normalise,
     OPENACLNN_ISA::group_norm_mean_and_rstd, OPENACLNN_ISA::group_norm_free_slots,
     OPENACLNN_ISA::group_norm_backward, OPENACLNN_ISA::group_norm_backward_short,
     OPENACLNN_ISA::group_norm_sums, OPENACLNN_ISA::group_norm_split_gradient,
     OPENACLNN_ISA::group_norm_coefficients, OPENACLNN_ISA::group_norm_parameter_gradients,
     OPENACLNN_ISA::group_norm_split_parameter_gradients},
    {
#define FORMULA(name, inputs, broadcasts) \
  OPENACLNN_ISA::formula_entry<OPENACLNN_ISA::name, inputs, broadcasts>(),
#include "generated/formulas.inc"
#undef FORMULA
    },
};

}  // namespace openaclnn
