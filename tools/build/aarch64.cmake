# SPDX-License-Identifier: Apache-2.0
# Cross-compiles for aarch64 with Debian's g++-aarch64-linux-gnu; tests run under qemu-user.
#
#   cmake -S . -B build/aarch64 -DCMAKE_TOOLCHAIN_FILE=tools/build/aarch64.cmake -DOPENACLNN_TESTS=ON
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64;-L;/usr/aarch64-linux-gnu)
