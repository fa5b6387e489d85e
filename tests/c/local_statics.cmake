# SPDX-License-Identifier: Apache-2.0
# No library has a local static with a guard: a child of fork whose parent was making it would wait
# for ever (core/support/no_destructor.h).
#   cmake -DNM=nm -DLIBRARIES=…;… -P local_statics.cmake
foreach(library ${LIBRARIES})
  execute_process(COMMAND ${NM} -C ${library} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  if(NOT symbols MATCHES "openaclnn")
    message(FATAL_ERROR "${library} has no symbols")
  endif()
  string(REGEX MATCHALL "guard variable for [^\n]*" guards "${symbols}")
  list(FILTER guards EXCLUDE REGEX "openaclnn::stack_room\\(\\)::stack$")  # thread_local
  if(guards)
    list(JOIN guards "\n  " text)
    message(SEND_ERROR "${library} has local statics that NoDestructor should hold:\n  ${text}")
  endif()
endforeach()
