// SPDX-License-Identifier: Apache-2.0
// A library that only has a name: what it stands for is in libopenaclnn_npu, which it needs. A
// library without a function has no table for unwinding, and torch warns about each of these.
__attribute__((used)) static void openaclnn_function(void) {}
