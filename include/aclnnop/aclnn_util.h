// SPDX-License-Identifier: Apache-2.0
// The mark of an exported operator function.
#ifndef OPENACLNN_ACLNN_UTIL_H
#define OPENACLNN_ACLNN_UTIL_H

#define ACLNN_API __attribute__((visibility("default")))

#endif
