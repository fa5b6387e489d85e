// SPDX-License-Identifier: Apache-2.0
// The formulas of GroupNormSwish and its gradient in long double, position by position, written
// independently of the kernels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "families.inc"
#include "formulas.h"

namespace fuzz {
namespace {

using Real = long double;
using Reals = std::vector<Real>;

constexpr Real kBound = 4e-7L;
constexpr Real kLeast = 0x1p-149L / kBound;
constexpr Real kLargest = 1e37L;  // of FLOAT, beyond which a step may leave its range

// What a case holds, by name.
class Named {
 public:
  Named(const Case& c, const std::vector<Given>& results) : c_(c), results_(results) {}

  bool has(const char* name) const { return find(name) < c_.row->parameters.size(); }
  size_t find(const char* name) const {
    size_t i = 0;
    while (i < c_.row->parameters.size() && std::strcmp(c_.row->parameters[i].name, name) != 0) ++i;
    return i;
  }
  Reals input(const char* name) const {
    const auto& values = c_.originals[find(name)];
    return {values.begin(), values.end()};
  }
  Real number(const char* name) const { return c_.values[find(name)].real; }
  bool flag(const char* name) const { return c_.values[find(name)].flag; }

  // The error of every element of an output against what it may be.
  void judge(const char* name, const Reals& want, const Reals& terms) const {
    const size_t i = find(name);
    const Given& t = results_[i];
    if (t.made == nullptr || !is_wanted(c_, i)) return;
    const Real largest = t.dtype == ACL_FLOAT16 ? 6e4L : kLargest;
    for (size_t n = 0; n < want.size(); ++n) {
      const Real got = value_at(t.data + n * size_of(t.dtype), t.dtype);
      if (!std::isfinite(want[n])) {
        if (std::isnan(want[n]) && std::isfinite(got)) refuse(name, n, want[n], got, terms[n]);
        continue;
      }
      if (!(terms[n] < largest)) continue;  // some step of it may leave the range
      const Real allowed = allowed_of_terms(kBound, terms[n], want[n], t.dtype);
      if (!(std::fabs(got - want[n]) <= allowed)) refuse(name, n, want[n], got, terms[n]);
    }
  }

 private:
  void refuse(const char* name, size_t n, Real want, Real got, Real terms) const {
    fault("%s: %s[%zu] must be %.9Lg, a sum of %.3Lg without signs, but is %.9Lg", c_.row->name,
          name, n, want, terms, got);
  }

  const Case& c_;
  const std::vector<Given>& results_;
};

struct Shape {
  size_t samples, channels, groups, positions;

  size_t width() const { return channels / groups; }
  size_t row(size_t n, size_t c) const { return (n * channels + c) * positions; }
  size_t group(size_t n, size_t c) const { return n * groups + c / width(); }
};

Shape shape_of(const Case& c, const Named& named) {
  const Dims& x = c.tensors[named.find("x")].shape;
  Shape s{static_cast<size_t>(x[0]), static_cast<size_t>(x[1]), 0, 1};
  s.groups = static_cast<size_t>(c.values[named.find("numGroups")].integer);
  for (size_t d = 2; d < x.size(); ++d) s.positions *= static_cast<size_t>(x[d]);
  return s;
}

Real logistic(Real t) {
  const Real e = std::exp(-std::fabs(t));
  return (t < 0 ? e : 1) / (1 + e);
}

void forward(const Named& named, const Shape& s) {
  const Reals x = named.input("x"), gamma = named.input("gamma"), beta = named.input("beta");
  const Real eps = named.number("eps"), scale = named.number("swishScale");
  const bool swish = named.flag("activateSwish");
  Reals y(x.size()), y_terms(x.size());
  Reals mean(s.samples * s.groups), size(mean.size()), rstd(mean.size());
  const size_t count = s.width() * s.positions;
  for (size_t g = 0; g < mean.size(); ++g) {
    Real squares = 0;
    for (size_t i = 0; i < count; ++i) mean[g] += x[g * count + i];
    mean[g] /= static_cast<Real>(count);
    for (size_t i = 0; i < count; ++i) {
      const Real off = x[g * count + i] - mean[g];
      squares += off * off, size[g] += std::fabs(x[g * count + i]) / static_cast<Real>(count);
    }
    rstd[g] = 1 / std::sqrt(squares / static_cast<Real>(count) + eps);
  }
  for (size_t n = 0; n < s.samples; ++n) {
    for (size_t c = 0; c < s.channels; ++c) {
      for (size_t i = s.row(n, c); i < s.row(n, c) + s.positions; ++i) {
        const size_t g = s.group(n, c);
        const Real scaled = (x[i] - mean[g]) * rstd[g] * gamma[c], v = scaled + beta[c];
        y[i] = swish ? v * logistic(scale * v) : v;
        // the mean is off by 2^-46 of the mean of |x|
        const Real of_mean = std::fabs(size[g] * rstd[g] * gamma[c]) * 0x1p-46L / kBound;
        y_terms[i] = std::fabs(scaled) + std::fabs(beta[c]) + of_mean;
      }
    }
  }
  named.judge("yOut", y, y_terms);
  named.judge("meanOut", mean, size);
  named.judge("rstdOut", rstd, rstd);
}

void gradient(const Named& named, const Shape& s) {
  const Reals x = named.input("x"), dy = named.input("dy"), gamma = named.input("gamma"),
              beta = named.input("beta"), mean = named.input("mean"), rstd = named.input("rstd");
  const Real scale = named.number("swishScale");
  const size_t all = x.size(), count = s.width() * s.positions;
  // with signs, and without: u, x̂, the means of γ u and of γ u x̂
  Reals h(all), u(all), size(all), c1(mean.size()), c2(mean.size()), c1_size(mean.size()),
      c2_size(mean.size());
  Reals dgamma(s.channels), dgamma_terms(s.channels), dbeta(s.channels), dbeta_terms(s.channels);
  for (size_t n = 0; n < s.samples; ++n) {
    for (size_t c = 0; c < s.channels; ++c) {
      const size_t g = s.group(n, c), first = s.row(n, c), end = first + s.positions;
      for (size_t i = first; i < end; ++i) {
        h[i] = (x[i] - mean[g]) * rstd[g];
        const Real t = scale * (h[i] * gamma[c] + beta[c]);
        const Real sigma = logistic(t), rest = logistic(-t);
        u[i] = dy[i] * sigma * (1 + t * rest);
        const Real slope = sigma * rest * std::fabs(2 + t * (rest - sigma));
        const Real parts = std::fabs(scale) * (std::fabs(h[i] * gamma[c]) + std::fabs(beta[c]));
        size[i] = std::fabs(dy[i]) * (sigma * (1 + std::fabs(t) * rest) + slope * parts);
        size[i] += kLeast;  // u, x̂ and products are held in FLOAT
        // x̂ = 65504 * 1.5e35 is infinite in FLOAT, and NaN times dy = 0
        if (!(std::fabs(h[i]) < kLargest)) size[i] = INFINITY;
        const Real product =
            size[i] * std::fabs(h[i]) + kLeast * (1 + std::fabs(rstd[g]) + std::fabs(dy[i]));
        dbeta[c] += u[i], dbeta_terms[c] += size[i];
        dgamma[c] += u[i] * h[i], dgamma_terms[c] += product;
        c1[g] += gamma[c] * u[i] / static_cast<Real>(count);
        c2[g] += gamma[c] * u[i] * h[i] / static_cast<Real>(count);
        c1_size[g] += std::fabs(gamma[c]) * size[i] / static_cast<Real>(count);
        c2_size[g] += std::fabs(gamma[c]) * product / static_cast<Real>(count);
      }
    }
  }
  Reals dx(all), dx_terms(all);
  for (size_t n = 0; n < s.samples; ++n) {
    for (size_t c = 0; c < s.channels; ++c) {
      for (size_t i = s.row(n, c); i < s.row(n, c) + s.positions; ++i) {
        const size_t g = s.group(n, c);
        dx[i] = rstd[g] * (gamma[c] * u[i] - c1[g] - h[i] * c2[g]);
        dx_terms[i] = std::fabs(rstd[g]) *
                      (std::fabs(gamma[c]) * size[i] + c1_size[g] + std::fabs(h[i]) * c2_size[g]);
      }
    }
  }
  named.judge("dxOut", dx, dx_terms);
  named.judge("dgammaOut", dgamma, dgamma_terms);
  named.judge("dbetaOut", dbeta, dbeta_terms);
}

void store(const Given& t, size_t at, double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  const auto brain = static_cast<uint16_t>(bits >> 16);
  const aclFloat16 half = aclFloatToFloat16(narrow);
  const void* const source = t.dtype == ACL_BF16      ? static_cast<const void*>(&brain)
                             : t.dtype == ACL_FLOAT16 ? static_cast<const void*>(&half)
                                                      : &narrow;
  std::memcpy(t.data + at, source, size_of(t.dtype));
}

double any_size(Random& random) { return std::pow(10, random.uniform(-45, 38)); }

// Gives each input a magnitude between 1e-45 and 1e38, mean and rstd those that fit x, and replaces
// a few elements by special values.
void resize(Random& random, Case& c) {
  const Named named(c, c.tensors);
  double of_x = random.chance(40) ? 1 : std::pow(10, random.uniform(-45, 36));
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    const Parameter& parameter = c.row->parameters[i];
    const Given& t = c.tensors[i];
    if (parameter.kind != Kind::tensor || parameter.role != Role::input) continue;
    const std::string name = parameter.name;
    double size = random.chance(40) ? 1 : any_size(random);
    if (name == "x" || name == "mean") size = of_x;
    if (name == "rstd") size = 1 / std::fmax(of_x, random.chance(50) ? 3e-3 : 3e-39);
    const bool special = random.chance(15);
    const auto elements = static_cast<size_t>(range_of(t).high);
    const double low = name == "rstd" ? 0.5 : -2;
    for (size_t k = 0; k < elements; ++k) {
      constexpr double kSpecials[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e-45, -1e-40, 1e-38};
      const bool here = special && random.chance(3);
      store(t, k * size_of(t.dtype), here ? random.pick(kSpecials) : random.uniform(low, 2) * size);
    }
  }
  if (named.has("eps")) {
    constexpr double kEps[] = {0, 1e-45, 1e-12, 1e-5, 1, 1e30};
    c.values[named.find("eps")].real = random.pick(kEps);
  }
  constexpr double kScales[] = {1, 1, 1, 0, -1, 1.702, 1e-38, -1e38, 1e38};
  c.values[named.find("swishScale")].real = random.pick(kScales);
}

// Checks that every output is within the promised share of the sum of its absolute terms.
void check(const Case& c, const std::vector<Given>& results) {
  if (!c.ordinary) return;
  const Named named(c, results);
  for (size_t i = 0; i < c.tensors.size(); ++i) {
    const Parameter& parameter = c.row->parameters[i];
    const bool input = parameter.kind == Kind::tensor && parameter.role == Role::input;
    if (input && c.originals[i].empty()) return;
  }
  const Shape s = shape_of(c, named);
  named.has("dy") ? gradient(named, s) : forward(named, s);
}

double good_real(Random& random) { return static_cast<double>(random.between(1, 32)) / 64; }

}  // namespace

const Family group_norm = {good_real, nullptr, resize, check};

}  // namespace fuzz
