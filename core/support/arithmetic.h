// SPDX-License-Identifier: Apache-2.0
// The arithmetic of C: round to nearest, keep subnormals, raise no signal. A calling thread may
// have another (torch.set_flush_denormal, fesetround, feenableexcept, programs linked with
// -ffast-math), and the result of a call must not depend on it, nor on which thread computes.
#pragma once

#include <cfenv>

namespace openaclnn {

// RAII: the destructor restores the environment, exception flags included. Compilers may move
// arithmetic across the switch, so it must be in a call that is not inlined, or between two `pin`s
// of its operands.
class DefaultArithmetic {
 public:
  DefaultArithmetic(const DefaultArithmetic&) = delete;

#if defined(__x86_64__)
  // Reading MXCSR takes a nanosecond, writing it several. Inexact is mostly raised already, so
  // there is mostly nothing to write.
  DefaultArithmetic() : before_(__builtin_ia32_stmxcsr()) {
    if ((before_ & ~kFlags) != kDefault) __builtin_ia32_ldmxcsr(kDefault);
  }
  ~DefaultArithmetic() {
    if (__builtin_ia32_stmxcsr() != before_) __builtin_ia32_ldmxcsr(before_);
  }

 private:
  static constexpr unsigned kDefault = 0x1f80, kFlags = 0x3f;
  unsigned before_;
#elif defined(__aarch64__)
  DefaultArithmetic()
      : before_(__builtin_aarch64_get_fpcr()), flags_(__builtin_aarch64_get_fpsr()) {
    if (before_ != 0) __builtin_aarch64_set_fpcr(0);
  }
  ~DefaultArithmetic() {
    if (before_ != 0) __builtin_aarch64_set_fpcr(before_);
    if (__builtin_aarch64_get_fpsr() != flags_) __builtin_aarch64_set_fpsr(flags_);
  }

 private:
  unsigned before_, flags_;
#else
#error "state how the default arithmetic is set"
#endif
};

// Compiler barrier for a value: what produces it comes before, what uses it after.
template <class T>
inline void pin(T& value) {
  asm volatile("" : "+m"(value));
}

// The same for text too: printf rounds as the x87 unit would. It takes ten times as long.
class DefaultEnvironment {
 public:
  DefaultEnvironment() {
    std::fegetenv(&before_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultEnvironment() { std::fesetenv(&before_); }
  DefaultEnvironment(const DefaultEnvironment&) = delete;

 private:
  std::fenv_t before_;
};

}  // namespace openaclnn
