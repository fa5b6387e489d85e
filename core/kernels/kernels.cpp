// SPDX-License-Identifier: Apache-2.0
// The kernel table of an instruction set, and its element-wise kernels.
#include "core/kernels/kernels.h"

#include "core/kernels/activation.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/elu.h"
#include "core/kernels/elu_backward.h"
#include "core/kernels/formula.h"
#include "core/kernels/logit.h"
#include "core/kernels/packed.h"

#define OPENACLNN_TEXT_(x) #x
#define OPENACLNN_TEXT(x) OPENACLNN_TEXT_(x)

namespace openaclnn {

extern const Kernels OPENACLNN_OF_ISA(kernels_);
extern const GroupNormKernels OPENACLNN_OF_ISA(group_norm_);

const Kernels OPENACLNN_OF_ISA(kernels_) = {
    OPENACLNN_TEXT(OPENACLNN_ISA),
    OPENACLNN_ISA::elementwise<float>,
    OPENACLNN_ISA::elementwise<double>,
    OPENACLNN_OF_ISA(group_norm_),
    {
#define FORMULA(name, inputs, broadcasts) \
  OPENACLNN_ISA::formula_entry<OPENACLNN_ISA::name, inputs, broadcasts>(),
#include "generated/formulas.inc"
#undef FORMULA
    },
};

}  // namespace openaclnn
