# SPDX-License-Identifier: Apache-2.0
# find_package(openaclnn): wherever the installation directory lies now.
#
#   openaclnn::openaclnn    the headers and all libraries that an aclnn program names
#   openaclnn::ascendcl …   one of them, with the headers
#   find_package(openaclnn COMPONENTS aten)    the directory must be one of `openaclnn home --aten`
#   ASCEND_HOME_PATH, ASCEND_PATH, openaclnn_INCLUDE_DIRS, openaclnn_LIBRARIES
get_filename_component(_openaclnn_home "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

foreach(_openaclnn_component ${openaclnn_FIND_COMPONENTS})
  if(_openaclnn_component STREQUAL aten AND EXISTS "${_openaclnn_home}/lib64/libopenaclnn_aten.so")
    set(openaclnn_aten_FOUND TRUE)
  elseif(openaclnn_FIND_REQUIRED_${_openaclnn_component})
    set(openaclnn_FOUND FALSE)
    set(openaclnn_NOT_FOUND_MESSAGE "${_openaclnn_home} must have the component ${_openaclnn_component}, but does not; "
        "there is one, aten, in what `openaclnn home --aten` prints")
    string(CONCAT openaclnn_NOT_FOUND_MESSAGE ${openaclnn_NOT_FOUND_MESSAGE})
    return()
  endif()
endforeach()

set(openaclnn_INCLUDE_DIRS
  ${_openaclnn_home}/include ${_openaclnn_home}/include/aclnn ${_openaclnn_home}/include/aclnnop)
set(openaclnn_LIBRARIES openaclnn::openaclnn)
set(ASCEND_HOME_PATH "${_openaclnn_home}")
set(ASCEND_PATH "${_openaclnn_home}")

if(NOT TARGET openaclnn::openaclnn)
  foreach(_openaclnn_name ascendcl acl_rt nnopbase opapi opapi_nn opapi_math acl_op_compiler)
    set(_openaclnn_file "${_openaclnn_home}/lib64/lib${_openaclnn_name}.so")
    if(NOT EXISTS "${_openaclnn_file}")
      set(openaclnn_FOUND FALSE)
      set(openaclnn_NOT_FOUND_MESSAGE "${_openaclnn_file} must exist, but does not")
      return()
    endif()
    add_library(openaclnn::${_openaclnn_name} SHARED IMPORTED)
    set_target_properties(openaclnn::${_openaclnn_name} PROPERTIES
      IMPORTED_LOCATION "${_openaclnn_file}"
      INTERFACE_INCLUDE_DIRECTORIES "${openaclnn_INCLUDE_DIRS}")
  endforeach()
  add_library(openaclnn::openaclnn INTERFACE IMPORTED)
  set_target_properties(openaclnn::openaclnn PROPERTIES INTERFACE_LINK_LIBRARIES
    "openaclnn::opapi_nn;openaclnn::opapi_math;openaclnn::ascendcl;openaclnn::nnopbase")
endif()
