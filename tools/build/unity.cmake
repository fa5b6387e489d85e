# SPDX-License-Identifier: Apache-2.0
# ---- sources of a folder compiled several at a time: they read the same headers ----
# `pip install .` takes a sixth less. The step clang_sanitized of .ci/run compiles each by itself, and so
# notices an #include that is missing.
# Not UNITY_BUILD of CMake: before version 4 it includes by absolute path, and a copy of the tree finds
# none of its compilations in a compiler's cache.
option(OPENACLNN_UNITY "Compile several sources of a library at once" ON)

# The files of a pattern, or files that include `most` of them each.
function(sources_of result most pattern)
  file(GLOB files RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${pattern})
  list(LENGTH files count)
  set(units)
  set(at 0)
  while(OPENACLNN_UNITY AND at LESS count)
    list(SUBLIST files ${at} ${most} some)
    list(TRANSFORM some REPLACE "(.+)" "#include \"\\1\"" OUTPUT_VARIABLE lines)
    list(JOIN lines "\n" lines)
    string(REGEX REPLACE "/[^/]*$" "" folder ${pattern})
    file(CONFIGURE OUTPUT ${GEN}/unity/${folder}_${at}.cpp CONTENT "${lines}\n" @ONLY)
    list(APPEND units ${GEN}/unity/${folder}_${at}.cpp)
    math(EXPR at "${at} + ${most}")
  endwhile()
  if(NOT OPENACLNN_UNITY)
    list(TRANSFORM files PREPEND ${CMAKE_SOURCE_DIR}/ OUTPUT_VARIABLE units)
  endif()
  set(${result} ${units} PARENT_SCOPE)
endfunction()
