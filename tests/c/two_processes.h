// SPDX-License-Identifier: Apache-2.0
// Runs a test in two processes. The child of the fork makes its runtime calls itself; keys and
// process numbers go through pipes.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

// Runs `other` in a child, which gets the key, and `own` here with the child's number; `own` calls
// its second argument with the key, which returns when the child has ended.
template <class Own, class Other>
void in_two_processes(Own own, Other other) {
  int key_pipe[2], pid_pipe[2];
  CHECK_EQ(pipe(key_pipe), 0);
  CHECK_EQ(pipe(pid_pipe), 0);
  const pid_t child = fork();
  if (child == 0) {
    int32_t pid = 0;
    CHECK_EQ(aclrtSetDevice(0), 0);
    CHECK_EQ(aclrtDeviceGetBareTgid(&pid), 0);
    CHECK_EQ(write(pid_pipe[1], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
    char key[65];
    CHECK_EQ(read(key_pipe[0], key, sizeof key), static_cast<ssize_t>(sizeof key));
    other(key);
    CHECK_EQ(aclrtResetDevice(0), 0);
    _exit(check_result());
  }
  int32_t pid = 0;
  CHECK_EQ(read(pid_pipe[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  own(pid, [&](const char* key) {
    CHECK_EQ(write(key_pipe[1], key, 65), ssize_t{65});
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
  });
  for (const int end : {key_pipe[0], key_pipe[1], pid_pipe[0], pid_pipe[1]}) close(end);
}
