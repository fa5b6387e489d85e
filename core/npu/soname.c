// SPDX-License-Identifier: Apache-2.0
// A library that is only a name (soname) for libopenaclnn_npu. It has one function, because torch
// warns about libraries without an unwind table.
__attribute__((used)) static void openaclnn_function(void) {}
