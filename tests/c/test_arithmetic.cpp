// SPDX-License-Identifier: Apache-2.0
// Runtime calls that compute return the same bits in every floating-point environment of the
// calling thread, do not change it, and raise no signal where exceptions are unmasked. Within an
// environment the test itself compares only bytes.
#include <cfenv>
#include <cstring>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "check.h"

namespace {

// Control and flags, for comparison.
uint64_t controls() {
#if defined(__x86_64__)
  uint16_t unit = 0;
  __asm__ volatile("fnstcw %0" : "=m"(unit));
  return uint64_t{unit} << 32 | _mm_getcsr();
#else
  uint64_t control = 0, flags = 0;
  __asm__ volatile("mrs %0, fpcr" : "=r"(control));
  __asm__ volatile("mrs %0, fpsr" : "=r"(flags));
  return control << 32 | flags;
#endif
}

struct Environment {
  const char* name;
  void (*enter)();
};

void flush() {
#if defined(__x86_64__)
  _mm_setcsr(0x9fc0);  // FTZ and DAZ
#else
  __asm__ volatile("msr fpcr, %0" : : "r"(uint64_t{1} << 24));
#endif
}

void unmask() {
#if defined(__x86_64__)
  _mm_setcsr(0);  // the subnormal operand too, which feenableexcept does not know
#endif
}

constexpr Environment kEnvironments[] = {
    {"default", [] {}},
    {"flush", flush},
    {"down", [] { std::fesetround(FE_DOWNWARD); }},
    {"up", [] { std::fesetround(FE_UPWARD); }},
    {"to zero", [] { std::fesetround(FE_TOWARDZERO); }},
    {"unmasked", unmask},
};

void set_default() {
  std::fesetenv(FE_DFL_ENV);
#if defined(__x86_64__)
  _mm_setcsr(0x1f80);
#endif
}

// What the calls of a program return, as bytes.
struct Results {
  std::vector<uint16_t> halves;
  std::vector<float> floats;
  float y[6];
};

void convert(const std::vector<float>& values, Results* to) {
  for (size_t i = 0; i < values.size(); ++i) to->halves[i] = aclFloatToFloat16(values[i]);
  for (unsigned p = 0; p < 0x10000; ++p)
    to->floats[p] = aclFloat16ToFloat(static_cast<aclFloat16>(p));
}

void leaky_relu(aclrtStream stream, Results* to) {
  static float x[6] = {-1e20f, -1e-40f, 1e-40f, -3.0f, 2.0f, -1e-20f};
  const int64_t shape[] = {6};
  const double slope = 1.1e-40;
  aclScalar* scalar = aclCreateScalar(const_cast<double*>(&slope), ACL_DOUBLE);
  aclTensor* in = aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, x);
  aclTensor* out = aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, to->y);
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  CHECK(aclnnLeakyReluGetWorkspaceSize(in, scalar, out, &size, &executor) == 0);
  CHECK(aclnnLeakyRelu(nullptr, 0, executor, stream) == 0);
  CHECK(aclrtSynchronizeStream(stream) == 0);
  aclDestroyTensor(in);
  aclDestroyTensor(out);
  aclDestroyScalar(scalar);
}

void elapsed_time(aclrtEvent start, aclrtEvent end, float* ms) {
  CHECK(aclrtEventElapsedTime(ms, start, end) == 0);
}

void every_environment() {
  std::vector<float> values;
  for (uint32_t bits = 0; bits < 0xffff0000u; bits += 0x00003fffu) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    values.push_back(value);
  }
  aclrtEvent start, end;
  CHECK_EQ(aclrtSetDevice(0), 0);
  CHECK_EQ(aclrtCreateEventWithFlag(&start, ACL_EVENT_TIME_LINE), 0);
  CHECK_EQ(aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE), 0);
  CHECK_EQ(aclrtRecordEvent(start, nullptr), 0);
  CHECK_EQ(aclrtRecordEvent(end, nullptr), 0);
  CHECK_EQ(aclrtSynchronizeEvent(end), 0);
  Results expected{}, found{};
  float expected_ms = 0, ms = 0;
  for (Results* a : {&expected, &found}) a->halves.resize(values.size()), a->floats.resize(0x10000);
  for (const Environment& environment : kEnvironments) {
    const bool first = &environment == kEnvironments;
    Results* const to = first ? &expected : &found;
    environment.enter();
    const uint64_t before = controls();
    // A stream of this environment: its thread starts with it.
    aclrtStream stream = nullptr;
    CHECK(aclrtCreateStream(&stream) == 0);
    convert(values, to);
    leaky_relu(stream, to);
    elapsed_time(start, end, first ? &expected_ms : &ms);
    const bool refused = aclrtSetDevice(77) != 0;
    CHECK(aclrtDestroyStream(stream) == 0);
    const uint64_t after = controls();
    set_default();
    CHECK(refused);
    CHECK_TEXT("aclrtSetDevice");
    if (before != after) check_fail(__FILE__, __LINE__, environment.name);
    if (first) continue;
    const auto same = [](const auto& a, const auto& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
    };
    if (!same(found.halves, expected.halves) || !same(found.floats, expected.floats) ||
        std::memcmp(found.y, expected.y, sizeof found.y) != 0 ||
        std::memcmp(&ms, &expected_ms, sizeof ms) != 0) {
      check_fail(__FILE__, __LINE__, std::string("other bits in ") + environment.name);
    }
  }
  CHECK(expected.y[0] == -1e20f * 1.1e-40f && expected.y[0] != 0);
  CHECK_EQ(aclrtDestroyEvent(start), 0);
  CHECK_EQ(aclrtDestroyEvent(end), 0);
  CHECK_EQ(aclrtResetDevice(0), 0);
}

}  // namespace

int main() {
  every_environment();
  return check_result();
}
