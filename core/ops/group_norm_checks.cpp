// SPDX-License-Identifier: Apache-2.0
// What phase 1 of GroupNormSwish and GroupNormSwishGrad refuses.
#include <cmath>
#include <cstring>
#include <string>

#include "aclnn/aclnn_base.h"
#include "core/base/view.h"
#include "core/ops/group_norm_checks.h"

namespace openaclnn {
namespace {

constexpr int64_t kMaxGroupChannels = 4000;

Status check_rank(const GroupNorm& g, const char* name, const Tensor& tensor, int least, int most) {
  const int rank = tensor.shape.rank;
  if (rank >= least && rank <= most) return {};
  const std::string wanted =
      least == most ? std::to_string(least) + " dimension"
                    : std::to_string(least) + " to " + std::to_string(most) + " dimensions";
  return fail(ACLNN_ERR_PARAM_INVALID, "%s: %s must have %s, but got %d", g.op.name, name,
              wanted.c_str(), rank);
}

Status check_ranks(const GroupNorm& g) {
  for (const char* name : {"dy", "x"}) {
    if (const Tensor* t = g.tensor(name)) {
      if (Status status = check_rank(g, name, *t, 2, kMaxRank); !status.ok()) return status;
    }
  }
  for (const char* name : {"gamma", "beta"}) {
    if (Status status = check_rank(g, name, *g.tensor(name), 1, 1); !status.ok()) return status;
  }
  return {};
}

Status check_shape(const GroupNorm& g, const char* name, const Tensor* tensor, const char* whose,
                   const Dims& shape) {
  if (tensor == nullptr || tensor->shape == shape) return {};
  return fail(ACLNN_ERR_PARAM_INVALID, "%s: %s must have the shape %s %s, but got %s", g.op.name,
              name, whose, to_text(shape).c_str(), to_text(tensor->shape).c_str());
}

// What does not depend on attributes.
Status check_input_shapes(GroupNorm& g) {
  const char* first = g.backward() ? "dy" : "x";
  const Dims& shape = g.tensor(first)->shape;
  int64_t count = 0;
  if (element_count(shape, &count) && count == 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, "%s: %s must not be empty, but has shape %s", g.op.name,
                first, to_text(shape).c_str());
  }
  if (Status status = check_shape(g, "x", g.x, "of dy", shape); !status.ok()) return status;
  g.samples = shape[0], g.channels = shape[1];
  const Dims channels = dims_of({g.channels});
  for (const char* name : {"gamma", "beta"}) {
    if (Status status = check_shape(g, name, g.tensor(name), "of the channels", channels);
        !status.ok())
      return status;
  }
  return {};
}

}  // namespace

Status check_output_shapes(const GroupNorm& g) {
  const Dims channels = dims_of({g.channels});
  const char* out = g.backward() ? "dxOut" : "yOut";
  if (Status status = check_shape(g, out, g.out, "of x", g.x->shape); !status.ok()) return status;
  if (Status status = check_shape(g, "dgammaOut", g.dgamma, "of gamma", channels); !status.ok())
    return status;
  return check_shape(g, "dbetaOut", g.dbeta, "of beta", channels);
}

Status check_attributes(GroupNorm& g) {
  g.groups = g.argument("numGroups").integer;
  const auto groups = static_cast<long long>(g.groups);
  const auto channels = static_cast<long long>(g.channels);
  if (g.groups <= 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, "%s: numGroups must be greater than 0, but got %lld",
                g.op.name, groups);
  }
  if (g.channels % g.groups != 0) {
    return fail(ACLNN_ERR_PARAM_INVALID,
                "%s: numGroups must divide the %lld channels of x, but got %lld", g.op.name,
                channels, groups);
  }
  if (g.channels / g.groups > kMaxGroupChannels) {
    return fail(ACLNN_ERR_PARAM_INVALID,
                "%s: numGroups must leave at most %lld channels a group, but %lld channels in %lld "
                "groups are %lld",
                g.op.name, static_cast<long long>(kMaxGroupChannels), channels, groups,
                channels / groups);
  }
  const char* format = g.argument("dataFormatOptional").text;
  if (format != nullptr && std::strcmp(format, "NCHW") != 0 && std::strcmp(format, "ND") != 0) {
    return fail(
        ACLNN_ERR_PARAM_INVALID,
        "%s: dataFormatOptional must be \"NCHW\" or \"ND\" where it is given (strides tell the "
        "memory order), but got \"%.32s\"",
        g.op.name, format);
  }
  const double scale = g.argument("swishScale").real;
  if (!std::isfinite(scale)) {
    return fail(ACLNN_ERR_PARAM_INVALID, "%s: swishScale must be finite, but got %g", g.op.name,
                scale);
  }
  return {};
}

// Their shapes follow from numGroups, so they are looked at after it.
Status check_statistics(const GroupNorm& g) {
  const Dims wanted = dims_of({g.samples, g.groups});
  for (const char* name : {"mean", "rstd"}) {
    const Tensor* tensor = std::strcmp(name, "mean") == 0 ? g.mean : g.rstd;
    if (!g.backward()) {
      const std::string output = std::string(name) + "Out";
      if (Status status = check_shape(g, output.c_str(), tensor, "of samples and groups", wanted);
          !status.ok())
        return status;
      continue;
    }
    int64_t count = 0;
    const Dims& shape = tensor->shape;
    const bool counted = element_count(shape, &count) && count == g.samples * g.groups;
    if (counted && (shape.rank <= 1 || shape[0] == g.samples)) continue;
    return fail(ACLNN_ERR_PARAM_INVALID,
                "%s: %s must have an element for each of %lld samples and %lld groups, samples "
                "first, but got shape %s",
                g.op.name, name, static_cast<long long>(g.samples),
                static_cast<long long>(g.groups), to_text(shape).c_str());
  }
  return {};
}

Status check_views(const GroupNorm& g) {
  for (int i = 0; i < g.op.parameter_count; ++i) {
    const Parameter& parameter = g.op.parameters[i];
    if (parameter.kind != Kind::tensor || !is_wanted(g.op, g.arguments, i)) continue;
    if (Status status = check_view(g.op, parameter, *g.arguments[i].tensor); !status.ok())
      return status;
  }
  return check_overlap(g.op, g.arguments);
}

Status check_inputs(GroupNorm& g) {
  if (Status status = check_ranks(g); !status.ok()) return status;
  return check_input_shapes(g);
}

}  // namespace openaclnn
