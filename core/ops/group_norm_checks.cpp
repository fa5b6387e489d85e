// SPDX-License-Identifier: Apache-2.0
// What phase 1 of GroupNormSwish and GroupNormSwishGrad refuses.
#include <cmath>
#include <cstring>

#include "aclnn/aclnn_base.h"
#include "core/ops/argument_checks.h"
#include "core/base/view.h"
#include "core/ops/group_norm_checks.h"

namespace openaclnn {
Status check_inputs(GroupNorm& g, Sizes& sizes) {
  if (Status status = sizes.check_ranks(); !status.ok()) return status;
  const char* first = g.backward() ? "dy" : "x";
  const Dims& shape = g.tensor(first)->shape;
  int64_t count = 0;
  if (element_count(shape, &count) && count == 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, g.op.name,
                "%s must not be empty, but has shape %s", first, to_text(shape).c_str());
  }
  g.samples = shape[0], g.channels = shape[1];
  return sizes.read_inputs();
}

Status check_attributes(GroupNorm& g) {
  g.groups = g.argument("numGroups").integer;
  const auto groups = static_cast<long long>(g.groups);
  const auto channels = static_cast<long long>(g.channels);
  if (g.groups <= 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, g.op.name,
                "numGroups must be greater than 0, but got %lld", groups);
  }
  if (g.channels % g.groups != 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, g.op.name,
                "numGroups must divide the %lld channels of x, but got %lld", channels, groups);
  }
  if (g.channels / g.groups > kMaxGroupChannels) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, g.op.name,
                "numGroups must leave at most %lld channels a group, but %lld channels in %lld "
                "groups are %lld",
                static_cast<long long>(kMaxGroupChannels), channels, groups, channels / groups);
  }
  const char* format = g.argument("dataFormatOptional").text;
  if (format != nullptr && std::strcmp(format, "NCHW") != 0 && std::strcmp(format, "ND") != 0) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, g.op.name,
                "dataFormatOptional must be \"NCHW\" or \"ND\" where it is given (strides tell the "
                "memory order), but got \"%.32s\"",
                format);
  }
  const double scale = g.argument("swishScale").real;
  if (!std::isfinite(scale)) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, g.op.name,
                "swishScale must be finite, but got %g", scale);
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

}  // namespace openaclnn
