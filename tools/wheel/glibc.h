// SPDX-License-Identifier: Apache-2.0
// Included before everything else in what is linked against an older glibc: the compiler was
// configured for the glibc of this machine, and its library uses three functions that came
// with 2.30. Without them it waits for times of the steady clock by the system clock, and looks
// again at the end.
#ifdef __cplusplus
#include <cstddef>  // defines the macros
#undef _GLIBCXX_USE_PTHREAD_COND_CLOCKWAIT
#undef _GLIBCXX_USE_PTHREAD_MUTEX_CLOCKLOCK
#undef _GLIBCXX_USE_PTHREAD_RWLOCK_CLOCKLOCK
#endif
