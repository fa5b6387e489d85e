# SPDX-License-Identifier: Apache-2.0
# ---- the kernels, once per instruction set ----
# Alone, GCC's -O2 vectorises hardly anything, and unrolls loops of a constant length only where the
# code does not grow, which -fpeel-loops lifts. -O3 takes 1.2 times as long to compile: v4 then takes
# 1.02 of the time for element-wise rows and 0.98 for group norm. With -O1 rows of 16 bits take 1.2 to
# 1.5 times as long, and the upper halves of registers stay in use after a kernel, which slows down its
# caller.
# No contraction: the same bits whatever the compiler fuses. No errno, no traps: loops may be vectorised.
set(KERNEL_FLAGS -ffp-contract=off -fno-math-errno -fno-trapping-math -fno-exceptions -fno-rtti)
if(NOT OPENACLNN_SANITIZE)  # the -O1 of all files otherwise
  list(PREPEND KERNEL_FLAGS -O2)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    list(APPEND KERNEL_FLAGS -ftree-vectorize -fvect-cost-model=dynamic -fpeel-loops)
  endif()
elseif(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # Checks of addresses as calls: the element-wise kernels take 40 s instead of 73.
  list(APPEND KERNEL_FLAGS --param=asan-instrumentation-with-call-threshold=0)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # GCC 12 takes its own _mm512_undefined_ps for an uninitialised value.
  list(APPEND KERNEL_FLAGS -Wno-maybe-uninitialized)
elseif(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
  # Clang unrolls some blocks of 32 before it comes to vectorise them, and warns that it did not.
  list(APPEND KERNEL_FLAGS -Wno-pass-failed)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(OPENACLNN_LEVELS v2 v3 v4 CACHE STRING "x86-64 levels to build: all, or for less waiting your CPU's alone")
  set(LEVELS)
  foreach(level v2 v3 v4)  # oldest first
    if(level IN_LIST OPENACLNN_LEVELS)
      list(APPEND LEVELS ${level})
    endif()
  endforeach()
  if(NOT LEVELS)
    message(FATAL_ERROR "OPENACLNN_LEVELS must name some of v2;v3;v4, but is \"${OPENACLNN_LEVELS}\"")
  endif()
  list(TRANSFORM LEVELS REPLACE "(.+)" "LEVEL(\\1)" OUTPUT_VARIABLE LEVEL_LINES)
  list(JOIN LEVEL_LINES "\n" LEVEL_LINES)
  file(CONFIGURE OUTPUT ${GEN}/generated/levels.inc CONTENT "${LEVEL_LINES}\n" @ONLY)
else()
  set(LEVELS native)
endif()
file(GLOB KERNELS CONFIGURE_DEPENDS core/kernels/*/*.cpp)
foreach(level ${LEVELS})
  add_library(kernels_${level} OBJECT ${KERNELS})
  add_dependencies(kernels_${level} generate)
  target_include_directories(kernels_${level} PRIVATE ${CMAKE_SOURCE_DIR} ${GEN})
  target_compile_definitions(kernels_${level} PRIVATE OPENACLNN_ISA=${level})
  target_compile_options(kernels_${level} PRIVATE ${KERNEL_FLAGS})
  if(NOT level STREQUAL native)
    target_compile_options(kernels_${level} PRIVATE -march=x86-64-${level})
  endif()
  if(level STREQUAL v4)
    target_compile_options(kernels_${level} PRIVATE -mprefer-vector-width=512)
  endif()
  if(level STREQUAL v2 AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND NOT OPENACLNN_SANITIZE)
    # For CPUs from before 2013, and nobody else should wait for them: -O2 takes 1.5 times as long to
    # compile and saves 5 % of the time, at most 10 % but for one row (hardshrink_backward, 28 %).
    target_compile_options(kernels_v2 PRIVATE -O1)
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND level MATCHES "v3|v4")
    # Registers that go through a formula one after the other are independent: where the compiler
    # mixes them, v4 takes 5 % less for fp32 logit; v3 6 % less for logit and 15 % for elu of 16 bits,
    # but 5 % more for fp32 elu and 12 % for its gradient. v2 calls a function for each fused product,
    # between which nothing can move.
    target_compile_options(kernels_${level} PRIVATE -fschedule-insns)
  endif()
  list(APPEND KERNEL_OBJECTS $<TARGET_OBJECTS:kernels_${level}>)
endforeach()
