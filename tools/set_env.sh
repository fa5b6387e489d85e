# SPDX-License-Identifier: Apache-2.0
# Source this file: points the variables that CANN builds and programs read at this installation.
_openaclnn_here="$(cd "$(dirname "${BASH_SOURCE[0]:-$0}")" && pwd)"
[ "$(basename "$_openaclnn_here")" = bin ] && _openaclnn_here="$(dirname "$_openaclnn_here")"
export ASCEND_HOME_PATH="$_openaclnn_here" ASCEND_TOOLKIT_HOME="$_openaclnn_here" ASCEND_AICPU_PATH="$_openaclnn_here"
export ASCEND_OPP_PATH="$_openaclnn_here/opp"
export LD_LIBRARY_PATH="$_openaclnn_here/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LIBRARY_PATH="$_openaclnn_here/lib64${LIBRARY_PATH:+:$LIBRARY_PATH}"
export CMAKE_PREFIX_PATH="$_openaclnn_here${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
unset _openaclnn_here
