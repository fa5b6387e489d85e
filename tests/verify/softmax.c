// SPDX-License-Identifier: Apache-2.0
// aclnnSoftmax in FLOAT: what tests/verify/test_golden_verify.py judges, as it is and with
// mistakes.
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "acl/acl.h"
#include "aclnn/openaclnn_read.h"

typedef struct {
  openaclnnTensorView x, out;
  int64_t dim;
} Plan;

aclnnStatus aclnnSoftmaxGetWorkspaceSize(const aclTensor* self, int64_t dim, aclTensor* out,
                                         uint64_t* workspaceSize, aclOpExecutor** executor) {
  Plan p;
  aclnnStatus status = 0;
  if ((status = openaclnnReadTensor(self, &p.x)) || (status = openaclnnReadTensor(out, &p.out)))
    return status;
  if (p.x.dataType != ACL_FLOAT || p.out.dataType != ACL_FLOAT)
    return openaclnnRefuse("aclnnSoftmax", 161002, "self and out must be FLOAT");
  bool fits = p.x.rank == p.out.rank;
  for (uint64_t d = 0; fits && d < p.x.rank; ++d) fits = p.x.shape[d] == p.out.shape[d];
  if (!fits) return openaclnnRefuse("aclnnSoftmax", 161002, "out must have the shape of self");
  p.dim = dim < 0 ? dim + (int64_t)p.x.rank : dim;
  Plan* plan = malloc(sizeof *plan);
  if (plan == NULL) return openaclnnRefuse("aclnnSoftmax", 561000, "out of memory");
  *plan = p;
  *workspaceSize = 0;
  *executor = (aclOpExecutor*)plan;
  return 0;
}

// Element i of those with index 0 along dim.
static int64_t place(const Plan* p, const openaclnnTensorView* t, int64_t i) {
  int64_t at = 0;
  for (int64_t d = (int64_t)t->rank - 1; d >= 0; --d) {
    if (d == p->dim) continue;
    at += i % t->shape[d] * t->strides[d];
    i /= t->shape[d];
  }
  return at;
}

aclnnStatus aclnnSoftmax(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor,
                         aclrtStream stream) {
  (void)workspace, (void)workspaceSize, (void)stream;
  Plan* p = (Plan*)executor;
  int64_t count = 1, n = p->x.shape[p->dim];
  for (uint64_t d = 0; d < p->x.rank; ++d)
    if ((int64_t)d != p->dim) count *= p->x.shape[d];
  for (int64_t i = 0; i < count; ++i) {
    const float* x = (const float*)p->x.data + place(p, &p->x, i);
    float* out = (float*)p->out.data + place(p, &p->out, i);
    int64_t step = p->x.strides[p->dim], out_step = p->out.strides[p->dim];
    float most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; ++k) most = x[k * step] > most ? x[k * step] : most;
    for (int64_t k = 0; k < n; ++k) sum += expf(x[k * step] - most);
    for (int64_t k = 0; k < n; ++k) out[k * out_step] = expf(x[k * step] - most) / sum;
  }
  free(p);
  return 0;
}
