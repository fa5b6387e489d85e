# SPDX-License-Identifier: Apache-2.0
# ---- an installation directory laid out like CANN's ----
set(HOME_DIR openaclnn/home)
install(TARGETS openaclnn ${NAMES} mspti LIBRARY DESTINATION ${HOME_DIR}/lib64)
install(TARGETS npu_smi RUNTIME DESTINATION ${HOME_DIR}/bin)
install(TARGETS openaclnn_trace ${TRACE_NAMES} LIBRARY DESTINATION ${HOME_DIR}/lib64/trace)
install(TARGETS trace_cust_opapi LIBRARY DESTINATION ${HOME_DIR}/lib64/trace/op_api/lib)
install(TARGETS openaclnn_npu ${NPU_TARGETS} LIBRARY DESTINATION ${HOME_DIR}/lib64/npu)
install(TARGETS openaclnn_aten ${ATEN_TARGETS} LIBRARY DESTINATION ${HOME_DIR}/lib64/aten)
install(TARGETS ${ATEN_TRACE_TARGETS} LIBRARY DESTINATION ${HOME_DIR}/lib64/aten/trace)
install(DIRECTORY include/ ${GEN}/include/ DESTINATION ${HOME_DIR}/include FILES_MATCHING PATTERN "*.h")
install(FILES tools/build/set_env.sh DESTINATION ${HOME_DIR})
install(FILES tools/build/set_env.sh DESTINATION ${HOME_DIR}/bin RENAME setenv.bash)
# What openaclnn.torch compiles on first use, with torch's headers that are not here yet.
install(DIRECTORY core/torch/ DESTINATION ${HOME_DIR}/share/torch PATTERN aten EXCLUDE
        PATTERN hccl EXCLUDE)
# What openaclnn.jax compiles on first use, with jaxlib's headers.
install(DIRECTORY core/jax/ DESTINATION ${HOME_DIR}/share/jax)
foreach(guest torch jax)
  install(FILES core/ops/direct.h DESTINATION ${HOME_DIR}/share/${guest}/core/ops)
  install(FILES core/base/parameter.h DESTINATION ${HOME_DIR}/share/${guest}/core/base)
endforeach()
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${GEN}/openaclnn-config-version.cmake COMPATIBILITY SameMinorVersion)
list(TRANSFORM LINK_LINE PREPEND "-l" OUTPUT_VARIABLE LINK_FLAGS)
list(JOIN LINK_FLAGS " " LINK_FLAGS)
configure_file(tools/build/openaclnn.pc.in ${GEN}/openaclnn.pc @ONLY)
configure_file(tools/build/openaclnn-config.cmake.in ${GEN}/openaclnn-config.cmake @ONLY)
install(FILES ${GEN}/openaclnn-config.cmake ${GEN}/openaclnn-config-version.cmake
        DESTINATION ${HOME_DIR}/share/cmake/openaclnn)
install(FILES ${GEN}/openaclnn.pc DESTINATION ${HOME_DIR}/share/pkgconfig)
install(DIRECTORY python/acl/ DESTINATION ${HOME_DIR}/python/site-packages/acl FILES_MATCHING PATTERN "*.py")
install(FILES python/sitecustomize.py python/openaclnn_imports.py DESTINATION ${HOME_DIR}/python/site-packages)
# where torch_npu looks for it
install(PROGRAMS python/msprof/msprof DESTINATION ${HOME_DIR}/tools/profiler/bin)
install(DIRECTORY python/msprof/ DESTINATION ${HOME_DIR}/tools/profiler/profiler_tool/analysis/msprof
        FILES_MATCHING PATTERN "*.py")
install(FILES tools/build/opp.txt DESTINATION ${HOME_DIR}/opp/lib64 RENAME README.txt)
# What `openaclnn docs` shows, and the files that these pages link to most.
install(DIRECTORY docs/ DESTINATION ${HOME_DIR}/share/docs FILES_MATCHING PATTERN "*.md")
install(DIRECTORY examples/ DESTINATION ${HOME_DIR}/share/examples)
install(FILES README.md README.zh-CN.md CHANGELOG.md CONTRIBUTING.md LICENSE
        DESTINATION ${HOME_DIR}/share)
# What the library for torch_npu is compiled from on first use.
foreach(folder aten hccl)
  install(DIRECTORY core/torch/${folder}/ DESTINATION ${HOME_DIR}/share/aten/core/torch/${folder})
endforeach()
install(DIRECTORY include/aclnnop/ ${GEN}/aten/include/aclnnop/ DESTINATION ${HOME_DIR}/aten/aclnnop
        FILES_MATCHING PATTERN "*.h")
foreach(folder base support runtime memory tasks npu acl hccl aten)
  install(DIRECTORY core/${folder}/ DESTINATION ${HOME_DIR}/share/aten/core/${folder}
          FILES_MATCHING PATTERN "*.h")
endforeach()
install(FILES core/torch/dtypes.h DESTINATION ${HOME_DIR}/share/aten/core/torch)
install(FILES core/ops/weights.h DESTINATION ${HOME_DIR}/share/aten/core/ops)
install(FILES core/kernels/weights/call.h DESTINATION ${HOME_DIR}/share/aten/core/kernels/weights)
# torch_npu looks for these two folders where ASCEND_HOME_PATH is set.
foreach(folder runtime compiler)
  install(FILES tools/build/npu_folder.txt DESTINATION ${HOME_DIR}/${folder} RENAME README.txt)
endforeach()
