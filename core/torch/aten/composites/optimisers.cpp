// SPDX-License-Identifier: Apache-2.0
// Optimisers: parameters and states of 16 bits are computed in float and rounded once. Guards
// against corrupted gradients.
#include "core/torch/aten/composites/checks.h"

namespace openaclnn::aten {
namespace {

// ---- one parameter ----

// What is updated in place, as it is before.
Tensor before(const Out& state, const char* name, const Out& parameter) {
  check_given(parameter.tensor(), "var");
  check_shape(state.tensor(), name, parameter.tensor().sizes());
  return at_least_float(state.tensor());
}

// A tensor of one element, which the row checks.
Tensor number(const Tensor& one) { return at_least_float(one).reshape(Ints{}); }

struct AdamW {
  Tensor p, m, v;

  // The powers are those of the step before. The largest v is read, not written.
  void step(const Tensor& beta1_power, const Tensor& beta2_power, const Tensor& lr,
            const Tensor& decay, const Tensor& beta1, const Tensor& beta2, const Tensor& eps,
            const Tensor& gradient, const Tensor& largest, bool amsgrad, bool maximize) {
    check_shape(gradient, "grad", p.sizes());
    if (amsgrad) check_shape(largest, "maxGradNorm", p.sizes());
    const Tensor b1 = number(beta1), b2 = number(beta2);
    const Tensor wide = at_least_float(gradient), g = maximize ? -wide : wide;
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    const Tensor most = amsgrad ? at::maximum(v, at_least_float(largest)) : v;
    const Tensor mean = m / (1 - number(beta1_power) * b1);
    const Tensor scale = (most / (1 - number(beta2_power) * b2)).sqrt() + number(eps);
    p = p - number(lr) * (mean / scale + number(decay) * p);
  }
};

void apply_adam_w(Out var, Out m, Out v, Tensor beta1_power, Tensor beta2_power, Tensor lr,
                  Tensor decay, Tensor beta1, Tensor beta2, Tensor eps, Tensor gradient,
                  Tensor largest, bool amsgrad, bool maximize) {
  AdamW state{before(var, "var", var), before(m, "m", var), before(v, "v", var)};
  state.step(beta1_power, beta2_power, lr, decay, beta1, beta2, eps, gradient, largest, amsgrad,
             maximize);
  var = state.p;
  m = state.m;
  v = state.v;
}

void apply_adam_w_by_type(Tensor var, Tensor m, Tensor v, Tensor beta1_power, Tensor beta2_power,
                          Tensor lr, Tensor decay, Tensor beta1, Tensor beta2, Tensor eps,
                          Tensor gradient, Tensor largest, Out var_out, Out m_out, Out v_out,
                          std::optional<bool> amsgrad, std::optional<bool> maximize) {
  AdamW state{at_least_float(var), at_least_float(m), at_least_float(v)};
  state.step(beta1_power, beta2_power, lr, decay, beta1, beta2, eps, gradient, largest,
             amsgrad.value_or(false), maximize.value_or(false));
  var_out = state.p;
  m_out = state.m;
  v_out = state.v;
}

struct Adam {
  Tensor p, m, v;

  // The powers are those of this step.
  void step(const Tensor& beta1_power, const Tensor& beta2_power, const Tensor& lr,
            const Tensor& beta1, const Tensor& beta2, const Tensor& eps, const Tensor& gradient,
            bool nesterov) {
    check_shape(gradient, "grad", p.sizes());
    const Tensor g = at_least_float(gradient), b1 = number(beta1), b2 = number(beta2);
    m = b1 * m + (1 - b1) * g;
    v = b2 * v + (1 - b2) * g * g;
    const Tensor rate = number(lr) * (1 - number(beta2_power)).sqrt() / (1 - number(beta1_power));
    p = p - rate * (nesterov ? b1 * m + (1 - b1) * g : m) / (v.sqrt() + number(eps));
  }
};

void apply_adam(Out var, Out m, Out v, Tensor beta1_power, Tensor beta2_power, Tensor lr,
                Tensor beta1, Tensor beta2, Tensor eps, Tensor gradient, bool, bool nesterov) {
  Adam state{before(var, "var", var), before(m, "m", var), before(v, "v", var)};
  state.step(beta1_power, beta2_power, lr, beta1, beta2, eps, gradient, nesterov);
  var = state.p;
  m = state.m;
  v = state.v;
}

// Results beside the state, which they usually are.
void apply_adam_by_type(Tensor var, Tensor m, Tensor v, Tensor beta1_power, Tensor beta2_power,
                        Tensor lr, Tensor beta1, Tensor beta2, Tensor eps, Tensor gradient,
                        Out var_out, Out m_out, Out v_out, std::optional<bool>,
                        std::optional<bool> nesterov) {
  Adam state{at_least_float(var), at_least_float(m), at_least_float(v)};
  state.step(beta1_power, beta2_power, lr, beta1, beta2, eps, gradient, nesterov.value_or(false));
  var_out = state.p;
  m_out = state.m;
  v_out = state.v;
}

// Adam without a correction of the moments; gradients whose norm is above the greatest are scaled.
void bert_adam(Tensor var, Tensor m, Tensor v, Tensor lr, Tensor beta1, Tensor beta2, Tensor eps,
               Tensor gradient, Tensor max_norm, Tensor norm, Tensor decay, Tensor, Out var_out,
               Out m_out, Out v_out, Text mode) {
  require(mode == "adam", "adam_mode must be adam, but is ", mode);
  check_shape(m, "m", var.sizes());
  check_shape(v, "v", var.sizes());
  check_shape(gradient, "grad", var.sizes());
  const Tensor b1 = number(beta1), b2 = number(beta2), most = number(max_norm), own = number(norm);
  const Tensor clips = (most > 0).logical_and(own > most);
  const Tensor g = at_least_float(gradient) * at::where(clips, most / own, at::ones_like(own));
  const Tensor mean = b1 * at_least_float(m) + (1 - b1) * g;
  const Tensor square = b2 * at_least_float(v) + (1 - b2) * g * g;
  const Tensor p = at_least_float(var);
  var_out = p - number(lr) * (mean / (square.sqrt() + number(eps)) + number(decay) * p);
  m_out = mean;
  v_out = square;
}

// Mode 0 adds the decay to the gradient, mode 1 to the step; s is the moving average of var.
void apply_ema_adam(Tensor gradient, Out var, Out m, Out v, Out s, Tensor step, double lr,
                    double ema, double beta1, double beta2, double eps, int64_t mode,
                    bool corrected, double decay) {
  const Tensor p = before(var, "var", var), average = before(s, "s", var);
  const Tensor m_before = before(m, "m", var), v_before = before(v, "v", var);
  check_shape(gradient, "grad", p.sizes());
  const double t = number_in<double>(step);
  const auto share = [&](double beta) { return corrected ? 1 - std::pow(beta, t) : 1.0; };
  Tensor g = at_least_float(gradient);
  if (mode == 0) g = g + decay * p;
  const Tensor first = beta1 * m_before + (1 - beta1) * g;
  const Tensor second = beta2 * v_before + (1 - beta2) * g * g;
  Tensor change = first / share(beta1) / ((second / share(beta2)).sqrt() + eps);
  if (mode == 1) change = change + decay * p;
  const Tensor after = p - lr * change;
  var = after;
  m = first;
  v = second;
  s = ema * average + (1 - ema) * after;
}

// ---- lists of parameters ----

void check_states(const Tensors& states, const char* name, const Tensors& params) {
  require(states.size() == params.size(), name, " must have as many tensors as params, ",
          params.size(), ", but has ", states.size());
  for (size_t i = 0; i < params.size(); ++i)
    check_shape(states[i], c10::str(name, "[", i, "]").c_str(), params[i].sizes());
}

double scale_in(const Tensor& given) { return given.defined() ? number_in<double>(given) : 1; }

// Nothing changes where foundInf is 1. The steps are those of this call.
void fused_adamw(Tensors params, Tensors gradients, Tensors m, Tensors v, Tensors largest,
                 Tensors steps, Tensor grad_scale, Tensor found_inf, double lr, double beta1,
                 double beta2, double decay, double eps, bool amsgrad, bool maximize) {
  check_states(gradients, "grads", params);
  check_states(m, "expAvgs", params);
  check_states(v, "expAvgSqs", params);
  if (amsgrad) check_states(largest, "maxExpAvgSqs", params);
  require(steps.size() == params.size(), "stateSteps must have as many tensors as params, ",
          params.size(), ", but has ", steps.size());
  if (found_inf.defined() && number_in<double>(found_inf) == 1) return;
  const double factor = (maximize ? -1 : 1) / scale_in(grad_scale);
  for (size_t i = 0; i < params.size(); ++i) {
    const double t = number_in<double>(steps[i]);
    const Tensor p = at_least_float(params[i]), g = at_least_float(gradients[i]) * factor;
    const Tensor first = beta1 * at_least_float(m[i]) + (1 - beta1) * g;
    const Tensor second = beta2 * at_least_float(v[i]) + (1 - beta2) * g * g;
    const Tensor most = amsgrad ? at::maximum(at_least_float(largest[i]), second) : second;
    const Tensor scale = (most / (1 - std::pow(beta2, t))).sqrt() + eps;
    put(params[i], p * (1 - lr * decay) - lr / (1 - std::pow(beta1, t)) * (first / scale),
        "params");
    put(m[i], first, "expAvgs");
    put(v[i], second, "expAvgSqs");
    if (amsgrad) put(largest[i], most, "maxExpAvgSqs");
  }
}

// The gradients are written too, divided by gradScale.
void fused_sgd(Tensors params, Tensors gradients, Tensors buffers, Tensor grad_scale, double decay,
               double momentum, double lr, double dampening, bool nesterov, bool maximize,
               bool is_first) {
  check_states(gradients, "grads", params);
  if (!buffers.empty()) check_states(buffers, "momentumBuf", params);
  const double scale = scale_in(grad_scale);
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor p = at_least_float(params[i]), g = at_least_float(gradients[i]) / scale;
    Tensor step = (maximize ? -g : g) + decay * p;
    if (!buffers.empty()) {
      const Tensor sum =
          is_first ? step : momentum * at_least_float(buffers[i]) + (1 - dampening) * step;
      step = nesterov ? step + momentum * sum : sum;
      put(buffers[i], sum, "momentumBuf");
    }
    put(params[i], p - lr * step, "params");
    put(gradients[i], g, "grads");
  }
}

// ---- guards against corrupted gradients: the gradient itself stays ----

// sfda is the value before, the least and the largest. Level 1 with npuAsdDetect 2 leaves the
// history as it is. Jumps against the history are not judged: their measure is not documented.
void silent_check(Tensor value, Tensor, Tensor history, Tensor step, int64_t, double first_limit,
                  double, double second_limit, double, int64_t detect, Out result) {
  check_shape(history, "sfda", {3});
  const double x = number_in<double>(value), size = std::abs(x);
  const int level = !std::isfinite(x) || size > first_limit ? 1 : size > second_limit ? 2 : 0;
  result = at::full_like(result.tensor(), level);
  if (level == 1 && detect == 2) return;
  put(history,
      at::tensor({x, std::fmin(x, number_in<double>(history[1])),
                  std::fmax(x, number_in<double>(history[2]))}),
      "sfda");
  step.add_(1);
}

// avg is a moving average of the finite values.
void silent_check_v2(Tensor value, Tensor, Tensor average, Tensor, Tensor step, Ints, Ints, Ints,
                     double, double, double beta, int64_t, Out result) {
  const double x = number_in<double>(value), mean = number_in<double>(average);
  const bool finite = std::isfinite(x);
  result = at::full_like(result.tensor(), finite ? 0 : 1);
  if (finite) average.fill_(beta * mean + (1 - beta) * x);
  step.add_(1);
}

}  // namespace

const Composite optimiser_composites[] = {
    ENTRY(apply_adam_w),
    ENTRY(apply_adam_w_by_type),
    ENTRY(apply_adam),
    ENTRY(apply_adam_by_type),
    ENTRY(bert_adam),
    ENTRY(apply_ema_adam),
    ENTRY(fused_adamw),
    ENTRY(fused_sgd),
    ENTRY(silent_check),
    ENTRY(silent_check_v2),
    {},
};

}  // namespace openaclnn::aten
