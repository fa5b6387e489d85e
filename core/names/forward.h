// SPDX-License-Identifier: Apache-2.0
// A public name of one of CANN's libraries as a jump to the same function in libopenaclnn. The
// libraries hold nothing else, so whichever of them a program links or dlopens, there is one
// implementation and one set of state.
#pragma once

#ifndef FORWARD_TO
#define FORWARD_TO openaclnn_
#endif
#define OPENACLNN_QUOTE(text) #text
#define OPENACLNN_TEXT(macro) OPENACLNN_QUOTE(macro)

#if defined(__x86_64__)
#define FORWARD(name)                                                                  \
  __asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name                \
          ":\n\tendbr64\n\tjmp " OPENACLNN_TEXT(FORWARD_TO) #name "@PLT\n.size " #name \
                                                                  ", .-" #name "\n");
#elif defined(__aarch64__)
#define FORWARD(name)                                                                          \
  __asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name                        \
          ":\n\thint #34\n\tb " OPENACLNN_TEXT(FORWARD_TO) #name "\n.size " #name ", .-" #name \
                                                                 "\n");
#else
#error "openaclnn builds for x86-64 and aarch64"
#endif

// torch warns about libraries without an unwind table, which one without functions lacks.
__attribute__((used)) static void openaclnn_function(void) {}
