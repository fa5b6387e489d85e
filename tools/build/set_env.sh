# SPDX-License-Identifier: Apache-2.0
# Source this file: points the variables that CANN builds and programs read at this installation.
# A shell that does not know where a sourced file lies (dash) has to be in its folder.
_openaclnn_here=
for _openaclnn_file in "${BASH_SOURCE:-$0}" ./set_env.sh; do
  _openaclnn_here="$(CDPATH= cd -- "$(dirname -- "$_openaclnn_file")" >/dev/null 2>&1 && pwd)" || continue
  [ "${_openaclnn_here##*/}" = bin ] && _openaclnn_here="${_openaclnn_here%/bin}"
  [ -e "$_openaclnn_here/lib64/libopenaclnn.so" ] && break
  _openaclnn_here=
done
if [ -z "$_openaclnn_here" ]; then
  echo "set_env.sh: this shell does not know where the file lies: cd to its folder first, or source it from bash" >&2
  unset _openaclnn_here _openaclnn_file
  return 1
fi
export ASCEND_HOME_PATH="$_openaclnn_here" ASCEND_TOOLKIT_HOME="$_openaclnn_here" ASCEND_AICPU_PATH="$_openaclnn_here"
export ASCEND_OPP_PATH="$_openaclnn_here/opp" TOOLCHAIN_HOME="$_openaclnn_here"
# CMake files of samples read these.
export ASCEND_CUSTOM_PATH="$_openaclnn_here" ASCEND_INSTALL_PATH="$_openaclnn_here"
export PATH="$_openaclnn_here/bin:$_openaclnn_here/tools/profiler/bin:$PATH"
export LD_LIBRARY_PATH="$_openaclnn_here/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LIBRARY_PATH="$_openaclnn_here/lib64${LIBRARY_PATH:+:$LIBRARY_PATH}"
export CMAKE_PREFIX_PATH="$_openaclnn_here${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
export PKG_CONFIG_PATH="$_openaclnn_here/share/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"
# For the module acl alone: the package openaclnn lies where pip put it.
export PYTHONPATH="$_openaclnn_here/python/site-packages${PYTHONPATH:+:$PYTHONPATH}"
unset _openaclnn_here _openaclnn_file
