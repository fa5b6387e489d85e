// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set: OPENACLNN_ISA is v2, v3, v4 (x86-64 levels) or native
// (aarch64).
#include "core/kernels/kernels.h"

#include "core/kernels/activation.h"
#include "core/kernels/elementwise.h"
#include "core/kernels/elu.h"
#include "core/kernels/formula.h"
#include "core/kernels/logit.h"

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
    {
#define FORMULA(name, inputs) OPENACLNN_ISA::formula_entry<OPENACLNN_ISA::name, inputs>(),
#include "generated/formulas.inc"
#undef FORMULA
    },
};

}  // namespace openaclnn
