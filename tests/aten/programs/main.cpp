// SPDX-License-Identifier: Apache-2.0
// Makes every call of a plain C++ client of the operators, and checks the values. It prints a line
// for each with the largest distance in units in the last place, and how much is allowed.
//
//   calls [SEED [distorted]]      distorted: every comparison must fail
#include "calls.h"

int main(int argc, char** argv) {
  const unsigned seed =
      argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : std::random_device()();
  std::printf("# seed %u\n", seed);
  generator.seed(seed);
  distorted = argc > 2;
  must(aclInit(nullptr) == 0, "aclInit");
  must(aclrtSetDevice(0) == 0, "aclrtSetDevice");
  must(aclrtCreateStream(&stream()) == 0, "aclrtCreateStream");
  elementwise();
  shapes();
  matrices();
  layers();
  aclrtDestroyStream(stream());
  aclrtResetDevice(0);
  aclFinalize();
  return failures == 0 ? 0 : 1;
}
