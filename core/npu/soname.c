// SPDX-License-Identifier: Apache-2.0
// A library that only has a name: what it stands for is in libopenaclnn_npu, which it needs.
typedef int openaclnn_only_a_name;
