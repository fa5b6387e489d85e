// SPDX-License-Identifier: Apache-2.0
// The element-wise kernels of an instruction set.
#include "core/kernels/elementwise/activation.h"
#include "core/kernels/elementwise/driver.h"
#include "core/kernels/elementwise/elu.h"
#include "core/kernels/elementwise/elu_backward.h"
#include "core/kernels/elementwise/logit.h"
#include "core/kernels/elementwise/packed.h"

namespace openaclnn {

extern const ElementwiseKernels OPENACLNN_OF_ISA(elementwise_);

const ElementwiseKernels OPENACLNN_OF_ISA(elementwise_) = {
    OPENACLNN_ISA::run_elementwise,
    {
#define FORMULA(name, inputs) OPENACLNN_ISA::choose_form<OPENACLNN_ISA::name, inputs>,
#include "generated/formulas.inc"
#undef FORMULA
    },
};

}  // namespace openaclnn
