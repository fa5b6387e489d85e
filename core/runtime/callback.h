// SPDX-License-Identifier: Apache-2.0
// Callbacks run on threads of the program: a stream that reaches one hands it to the thread that is
// subscribed to the stream, which takes it in aclrtProcessReport.
#pragma once

namespace openaclnn {

class Stream;

// Ends the subscription of a stream, if it has one. A callback that the stream waits for and that
// no thread has taken yet is dropped, which the stream's next synchronisation reports; others stay
// with the thread.
void forget_reporter(Stream* stream);

// Returns whether the calling thread is subscribed to a stream, whose work may be waiting for a
// callback that this thread has yet to run.
bool reports_here();

}  // namespace openaclnn
