// SPDX-License-Identifier: Apache-2.0
// Phase 1 of GroupNormSwish and GroupNormSwishGrad makes one GroupNormCall after the checks.
#include <algorithm>
#include <cstring>

#include "aclnn/aclnn_base.h"
#include "core/base/view.h"
#include "core/ops/group_norm_checks.h"
#include "core/ops/group_norm_steps.h"
#include "core/ops/argument_checks.h"
#include "core/ops/operator.h"

namespace openaclnn {
namespace {

int64_t position_stride(const Tensor& tensor, int dim) {
  return tensor.shape[dim] == 1 ? 0 : tensor.strides[dim];
}

// Turns the spatial dims into few loops, in row-major order, which no layout changes.
void fill_positions(GroupNormCall& call, const GroupNorm& g) {
  const Tensor* const tensors[] = {g.x, g.dy, g.out};
  GroupNormTensor* const views[] = {&call.x, &call.dy, &call.out};
  for (int k = 0; k < 3; ++k) {
    if (tensors[k] == nullptr) continue;
    views[k]->element = element_of(tensors[k]->dtype);
    views[k]->sample = position_stride(*tensors[k], 0);
    views[k]->channel = position_stride(*tensors[k], 1);
  }
  int loops = 0;
  call.positions = 1;
  for (int d = 2; d < g.x->shape.rank; ++d) {
    const int64_t size = g.x->shape[d];
    if (size == 1) continue;
    call.positions *= size;
    bool joins = loops > 0;
    for (int k = 0; k < 3 && joins; ++k) {
      joins = tensors[k] == nullptr ||
              views[k]->position[loops - 1] == position_stride(*tensors[k], d) * size;
    }
    if (!joins) call.spatial_size[loops++] = 1;
    call.spatial_size[loops - 1] *= size;
    for (int k = 0; k < 3; ++k) {
      if (tensors[k] != nullptr) views[k]->position[loops - 1] = position_stride(*tensors[k], d);
    }
  }
  if (loops == 0) {
    call.spatial_size[0] = 1;
    for (GroupNormTensor* view : views) view->position[0] = 0;
    loops = 1;
  }
  call.spatial_loops = loops;
  for (GroupNormTensor* view : views) {
    view->side = loops > 1                ? Side::neither
                 : view->position[0] == 1 ? Side::positions
                 : view->channel == 1     ? Side::channels
                                          : Side::neither;
  }
}

void fill_statistic(GroupNormStatistic& to, const Tensor& tensor) {
  to.element = element_of(tensor.dtype);
  to.loops = 0;
  for (int d = 0; d < tensor.shape.rank; ++d) {
    if (tensor.shape[d] == 1) continue;
    const int64_t size = tensor.shape[d], stride = tensor.strides[d];
    if (to.loops > 0 && to.stride[to.loops - 1] == stride * size) {
      to.size[to.loops - 1] *= size;
    } else {
      to.size[to.loops++] = size;
    }
    to.stride[to.loops - 1] = stride;
  }
  if (to.loops == 0) to.loops = 1, to.size[0] = 1, to.stride[0] = 0;
}

void fill_parameter(GroupNormParameter& to, const Tensor* tensor) {
  if (tensor == nullptr) return;
  to.element = element_of(tensor->dtype);
  to.stride = position_stride(*tensor, 0);
}

// In the order of the row, as aclSet…TensorAddr counts them.
void bind(const GroupNorm& g, GroupNormCall& call, Executor& executor) {
  const struct {
    const char* name;
    void** pointer;
  } pointers[] = {
      {"x", &call.x.data},
      {"dy", &call.dy.data},
      {"gamma", &call.gamma.data},
      {"beta", &call.beta.data},
      {"mean", &call.mean.data},
      {"meanOut", &call.mean.data},
      {"rstd", &call.rstd.data},
      {"rstdOut", &call.rstd.data},
      {"yOut", &call.out.data},
      {"dxOut", &call.out.data},
      {"dgammaOut", &call.dgamma.data},
      {"dbetaOut", &call.dbeta.data},
  };
  call.dgamma.data = call.dbeta.data = nullptr;
  for (int i = 0; i < g.op.parameter_count; ++i) {
    const Parameter& parameter = g.op.parameters[i];
    if (parameter.kind != Kind::tensor) continue;
    const Tensor* tensor = is_wanted(g.op, g.arguments, i) ? g.arguments[i].tensor : nullptr;
    const auto* found = pointers;
    while (std::strcmp(found->name, parameter.name) != 0) ++found;
    executor.bind(parameter.name, tensor, parameter.role, found->pointer, parameter.companion);
  }
}

}  // namespace

Status infer_group_norm(const Operator& op, const Argument* arguments, int output,
                        aclDataType* dtype, Dims* shape) {
  GroupNorm g(op, arguments);
  Sizes sizes(op, arguments);
  if (Status status = check_inputs(g, sizes); !status.ok()) return status;
  if (Status status = check_attributes(g); !status.ok()) return status;
  *dtype = op.parameters[output].companion ? g.gamma->dtype : g.x->dtype;
  *shape = sizes.shape(output);
  return {};
}

Status plan_group_norm(const Operator& op, const Argument* arguments, Executor& executor) {
  GroupNorm g(op, arguments);
  Sizes sizes(op, arguments);
  if (Status status = check_inputs(g, sizes); !status.ok()) return status;
  if (Status status = sizes.check_outputs(); !status.ok()) return status;
  if (Status status = check_attributes(g); !status.ok()) return status;
  if (Status status = sizes.check_given(); !status.ok()) return status;
  if (Status status = check_views(g); !status.ok()) return status;

  auto& call = executor.emplace_call<GroupNormCall>();
  bind(g, call, executor);
  fill_positions(call, g);
  fill_statistic(call.mean, *g.mean);
  fill_statistic(call.rstd, *g.rstd);
  fill_parameter(call.gamma, g.gamma);
  fill_parameter(call.beta, g.beta);
  fill_parameter(call.dgamma, g.dgamma);
  fill_parameter(call.dbeta, g.dbeta);
  call.samples = g.samples, call.channels = g.channels, call.groups = g.groups;
  call.eps = g.backward() ? 0 : g.argument("eps").real;
  call.swish = g.backward() || g.argument("activateSwish").flag;
  const double scale = g.argument("swishScale").real;
  const auto narrow = static_cast<float>(std::clamp(scale, -0x1.fffffep127, 0x1.fffffep127));
  call.scale = g.x->dtype == ACL_DOUBLE || narrow == 0 ? scale : static_cast<double>(narrow);
  add_steps(g, call, executor);
  return {};
}

}  // namespace openaclnn
