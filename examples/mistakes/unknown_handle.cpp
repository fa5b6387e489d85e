// SPDX-License-Identifier: Apache-2.0
// A stream is used whose creation failed, so that its handle is whatever was there before.
#include "mistake.h"

int main() {
  begin();
  int not_a_stream = 0;
  aclrtStream stream = &not_a_stream;
  aclrtSynchronizeStream(stream);
  end();
}
