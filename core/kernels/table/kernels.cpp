// SPDX-License-Identifier: Apache-2.0
// The kernel table of an instruction set.
#include "core/kernels/table/kernels.h"

#define OPENACLNN_TEXT_(x) #x
#define OPENACLNN_TEXT(x) OPENACLNN_TEXT_(x)

namespace openaclnn {

extern const Kernels OPENACLNN_OF_ISA(kernels_);
extern const ElementwiseKernels OPENACLNN_OF_ISA(elementwise_);
extern const GroupNormKernels OPENACLNN_OF_ISA(group_norm_);
extern const WeightKernels OPENACLNN_OF_ISA(weights_);

const Kernels OPENACLNN_OF_ISA(kernels_) = {
    OPENACLNN_TEXT(OPENACLNN_ISA),
    OPENACLNN_OF_ISA(elementwise_),
    OPENACLNN_OF_ISA(group_norm_),
    OPENACLNN_OF_ISA(weights_),
};

}  // namespace openaclnn
