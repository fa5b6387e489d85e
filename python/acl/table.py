# SPDX-License-Identifier: Apache-2.0
"""The functions: name in pyACL = result, C function and its parameters in C's order.

A parameter is `name: kind`, with kinds of kinds.py:
    > name: kind    the C function writes it: a result, in this order
    >> name: kind   the same, before the other results
    + name: kind    an argument that is a result, too
    #               the number of items of the lists that follow it
    name: kind?     may be left out
What the C function returns comes last: `ret` is its status, `none` is nothing. A name that begins
with `_` is for the functions that its module defines.
"""

ROWS = """
init = ret aclInit(config_path: text?)
finalize = ret aclFinalize()
get_soc_name = text aclrtGetSocName()
get_recent_err_msg = text aclGetRecentErrMsg()
data_type_size = size aclDataTypeSize(data_type: int)
float16_to_float = float aclFloat16ToFloat(value: ushort)
float_to_float16 = ushort aclFloatToFloat16(value: float)
get_cann_attribute = ret aclGetCannAttribute(attr: int, > value: int)
get_device_capability = ret aclGetDeviceCapability(device_id: uint, info: int, > value: long)

create_data_buffer = ptr aclCreateDataBuffer(data: ptr, size: size)
destroy_data_buffer = ret aclDestroyDataBuffer(data_buffer: ptr)
update_data_buffer = ret aclUpdateDataBuffer(data_buffer: ptr, data: ptr, size: size)
get_data_buffer_addr = ptr aclGetDataBufferAddr(data_buffer: ptr)
get_data_buffer_size = uint aclGetDataBufferSize(data_buffer: ptr)
get_data_buffer_size_v2 = size aclGetDataBufferSizeV2(data_buffer: ptr)

create_tensor_desc = ptr aclCreateTensorDesc(data_type: int, #, dims: longs, format: int)
destroy_tensor_desc = none aclDestroyTensorDesc(desc: ptr)
get_tensor_desc_type = int aclGetTensorDescType(desc: ptr)
get_tensor_desc_format = int aclGetTensorDescFormat(desc: ptr)
get_tensor_desc_size = size aclGetTensorDescSize(desc: ptr)
get_tensor_desc_element_count = size aclGetTensorDescElementCount(desc: ptr)
get_tensor_desc_num_dims = size aclGetTensorDescNumDims(desc: ptr)
get_tensor_desc_dim = long aclGetTensorDescDim(desc: ptr, index: size)
get_tensor_desc_dim_v2 = ret aclGetTensorDescDimV2(desc: ptr, index: size, > dim: long)
get_tensor_desc_dim_range = ret aclGetTensorDescDimRange(desc: ptr, index: size, count: size,
    > range: pair)
get_tensor_desc_name = text aclGetTensorDescName(desc: ptr)
set_tensor_desc_name = none aclSetTensorDescName(desc: ptr, name: text)
set_tensor_format = ret aclSetTensorFormat(desc: ptr, format: int)
set_tensor_shape = ret aclSetTensorShape(desc: ptr, #, dims: longs)
set_tensor_shape_range = ret aclSetTensorShapeRange(desc: ptr, #, dims_range: pairs)
set_tensor_place_ment = ret aclSetTensorPlaceMent(desc: ptr, mem_type: int)
set_tensor_const = ret aclSetTensorConst(desc: ptr, data: ptr, length: size)

rt.set_device = ret aclrtSetDevice(device_id: int)
rt.reset_device = ret aclrtResetDevice(device_id: int)
rt.reset_device_force = ret aclrtResetDeviceForce(device_id: int)
rt.get_device = ret aclrtGetDevice(> device_id: int)
rt.get_device_count = ret aclrtGetDeviceCount(> count: uint)
rt.get_device_info = ret aclrtGetDeviceInfo(device_id: uint, attr: int, > value: long)
rt.get_device_capability = ret aclrtGetDeviceCapability(device_id: int, feature: int, > value: int)
rt.get_run_mode = ret aclrtGetRunMode(> run_mode: int)
rt.synchronize_device = ret aclrtSynchronizeDevice()
rt.synchronize_device_with_timeout = ret aclrtSynchronizeDeviceWithTimeout(timeout: int)
rt.device_can_access_peer = ret aclrtDeviceCanAccessPeer(> can_access: int, device_id: int,
    peer_device_id: int)
rt.device_enable_peer_access = ret aclrtDeviceEnablePeerAccess(peer_device_id: int, flags: uint)
rt.device_disable_peer_access = ret aclrtDeviceDisablePeerAccess(peer_device_id: int)
rt.get_primary_ctx_state = ret aclrtGetPrimaryCtxState(device_id: int, > flags: uint,
    >> active: int)
rt.query_device_status = ret aclrtQueryDeviceStatus(device_id: int, > status: int)
rt.device_get_stream_priority_range = ret aclrtDeviceGetStreamPriorityRange(> least: int,
    > greatest: int)
rt.get_last_error = ret aclrtGetLastError(level: int)
rt.peek_at_last_error = ret aclrtPeekAtLastError(level: int)

rt.create_context = ret aclrtCreateContext(> context: ptr, device_id: int)
rt.destroy_context = ret aclrtDestroyContext(context: ptr)
rt.set_context = ret aclrtSetCurrentContext(context: ptr)
rt.get_context = ret aclrtGetCurrentContext(> context: ptr)
rt.ctx_get_current_default_stream = ret aclrtCtxGetCurrentDefaultStream(> stream: ptr)
rt.set_sys_param_opt = ret aclrtSetSysParamOpt(opt: int, value: long)
rt.get_sys_param_opt = ret aclrtGetSysParamOpt(opt: int, > value: long)
rt.ctx_set_sys_param_opt = ret aclrtCtxSetSysParamOpt(opt: int, value: long)
rt.ctx_get_sys_param_opt = ret aclrtCtxGetSysParamOpt(opt: int, > value: long)

rt.create_stream = ret aclrtCreateStream(> stream: ptr)
rt.create_stream_with_config = ret aclrtCreateStreamWithConfig(> stream: ptr, priority: uint,
    flag: uint)
rt.destroy_stream = ret aclrtDestroyStream(stream: ptr)
rt.destroy_stream_force = ret aclrtDestroyStreamForce(stream: ptr)
rt.synchronize_stream = ret aclrtSynchronizeStream(stream: ptr)
rt.synchronize_stream_with_timeout = ret aclrtSynchronizeStreamWithTimeout(stream: ptr,
    timeout: int)
rt.stream_query = ret aclrtStreamQuery(stream: ptr, > status: int)
rt.stream_wait_event = ret aclrtStreamWaitEvent(stream: ptr, event: ptr)
rt.stream_abort = ret aclrtStreamAbort(stream: ptr)
rt.set_stream_failure_mode = ret aclrtSetStreamFailureMode(stream: ptr, mode: ulong)
rt.set_op_wait_timeout = ret aclrtSetOpWaitTimeout(timeout: uint)
rt.set_op_execute_time_out = ret aclrtSetOpExecuteTimeOut(timeout: uint)

rt.create_event = ret aclrtCreateEvent(> event: ptr)
rt.create_event_with_flag = ret aclrtCreateEventWithFlag(> event: ptr, flag: uint)
rt.create_event_ex_with_flag = ret aclrtCreateEventExWithFlag(> event: ptr, flag: uint)
rt.destroy_event = ret aclrtDestroyEvent(event: ptr)
rt.record_event = ret aclrtRecordEvent(event: ptr, stream: ptr)
rt.reset_event = ret aclrtResetEvent(event: ptr, stream: ptr)
rt.query_event = ret aclrtQueryEvent(event: ptr, > status: int)
rt.query_event_status = ret aclrtQueryEventStatus(event: ptr, > status: int)
rt.query_event_wait_status = ret aclrtQueryEventWaitStatus(event: ptr, > status: int)
rt.synchronize_event = ret aclrtSynchronizeEvent(event: ptr)
rt.synchronize_event_with_timeout = ret aclrtSynchronizeEventWithTimeout(event: ptr, timeout: int)
rt.event_elapsed_time = ret aclrtEventElapsedTime(> ms: float, start: ptr, end: ptr)
rt.event_get_timestamp = ret aclrtEventGetTimestamp(event: ptr, > timestamp: ulong)
rt.get_event_id = ret aclrtGetEventId(event: ptr, > event_id: uint)

rt.malloc = ret aclrtMalloc(> dev_ptr: ptr, size: size, policy: int)
rt.malloc_align32 = ret aclrtMallocAlign32(> dev_ptr: ptr, size: size, policy: int)
rt.malloc_cached = ret aclrtMallocCached(> dev_ptr: ptr, size: size, policy: int)
rt.free = ret aclrtFree(dev_ptr: ptr)
rt.malloc_host = ret aclrtMallocHost(> host_ptr: ptr, size: size)
rt.free_host = ret aclrtFreeHost(host_ptr: ptr)
rt.memcpy = ret aclrtMemcpy(dst: ptr, dest_max: size, src: ptr, count: size, kind: int)
rt.memcpy_async = ret aclrtMemcpyAsync(dst: ptr, dest_max: size, src: ptr, count: size, kind: int,
    stream: ptr)
rt.memcpy2d = ret aclrtMemcpy2d(dst: ptr, dpitch: size, src: ptr, spitch: size, width: size,
    height: size, kind: int)
rt.memcpy2d_async = ret aclrtMemcpy2dAsync(dst: ptr, dpitch: size, src: ptr, spitch: size,
    width: size, height: size, kind: int, stream: ptr)
rt.memset = ret aclrtMemset(dev_ptr: ptr, max_count: size, value: int, count: size)
rt.memset_async = ret aclrtMemsetAsync(dev_ptr: ptr, max_count: size, value: int, count: size,
    stream: ptr)
rt.get_mem_info = ret aclrtGetMemInfo(attr: int, > free: size, > total: size)
rt.host_register = ret aclrtHostRegister(ptr: ptr, size: ulong, type: int, > dev_ptr: ptr)
rt.host_register_v2 = ret aclrtHostRegisterV2(ptr: ptr, size: ulong, flag: uint)
rt.host_get_device_pointer = ret aclrtHostGetDevicePointer(host_ptr: ptr, > dev_ptr: ptr,
    flag: uint)
rt.host_unregister = ret aclrtHostUnregister(ptr: ptr)
rt.reduce_async = ret aclrtReduceAsync(dst: ptr, src: ptr, count: ulong, kind: int, data_type: int,
    stream: ptr, reserve: ptr)

rt._launch_callback = ret aclrtLaunchCallback(fn: ptr, user_data: ptr, block_type: int, stream: ptr)
rt._set_exception_info_callback = ret aclrtSetExceptionInfoCallback(fn: ptr)
rt._pointer_get_attributes = ret aclrtPointerGetAttributes(ptr: ptr, > attributes: location)
rt.subscribe_report = ret aclrtSubscribeReport(thread_id: ulong, stream: ptr)
rt.unsubscribe_report = ret aclrtUnSubscribeReport(thread_id: ulong, stream: ptr)
rt.process_report = ret aclrtProcessReport(timeout: int)
rt.get_task_id_from_exception_info = uint aclrtGetTaskIdFromExceptionInfo(info: ptr)
rt.get_stream_id_from_exception_info = uint aclrtGetStreamIdFromExceptionInfo(info: ptr)
rt.get_thread_id_from_exception_info = uint aclrtGetThreadIdFromExceptionInfo(info: ptr)
rt.get_device_id_from_exception_info = uint aclrtGetDeviceIdFromExceptionInfo(info: ptr)
rt.get_error_code_from_exception_info = uint aclrtGetErrorCodeFromExceptionInfo(info: ptr)

op.create_attr = ptr aclopCreateAttr()
op.destroy_attr = none aclopDestroyAttr(attr: ptr)
op.set_attr_bool = ret aclopSetAttrBool(attr: ptr, name: text, value: byte)
op.set_attr_int = ret aclopSetAttrInt(attr: ptr, name: text, value: long)
op.set_attr_float = ret aclopSetAttrFloat(attr: ptr, name: text, value: float)
op.set_attr_string = ret aclopSetAttrString(attr: ptr, name: text, value: text)
op.set_attr_list_bool = ret aclopSetAttrListBool(attr: ptr, name: text, #, values: bytes)
op.set_attr_list_int = ret aclopSetAttrListInt(attr: ptr, name: text, #, values: longs)
op.set_attr_list_float = ret aclopSetAttrListFloat(attr: ptr, name: text, #, values: floats)
op.set_attr_list_string = ret aclopSetAttrListString(attr: ptr, name: text, #, values: texts)
op._set_attr_list_list_int = ret aclopSetAttrListListInt(attr: ptr, name: text, #, counts: ints,
    values: ptrs)
op.set_model_dir = ret aclopSetModelDir(model_dir: text)
op.execute = ret aclopExecuteV2(op_type: text, #, input_desc: ptrs, inputs: ptrs, #,
    output_desc: ptrs, outputs: ptrs, attr: ptr, stream: ptr)
op.execute_v2 = ret aclopExecuteV2(op_type: text, #, input_desc: ptrs, inputs: ptrs, #,
    output_desc: ptrs, outputs: ptrs, attr: ptr, stream: ptr)
op.cast = ret aclopCast(src_desc: ptr, src_buffer: ptr, dst_desc: ptr, dst_buffer: ptr,
    truncate: byte, stream: ptr)

blas.gemm_ex = ret aclblasGemmEx(trans_a: int, trans_b: int, trans_c: int, m: int, n: int, k: int,
    alpha: ptr, matrix_a: ptr, lda: int, data_type_a: int, matrix_b: ptr, ldb: int,
    data_type_b: int, beta: ptr, matrix_c: ptr, ldc: int, data_type_c: int, type: int, stream: ptr)

mdl.create_desc = ptr aclmdlCreateDesc()
mdl.destroy_desc = ret aclmdlDestroyDesc(model_desc: ptr)
mdl.get_desc = ret aclmdlGetDesc(model_desc: ptr, model_id: uint)
mdl.get_num_inputs = size aclmdlGetNumInputs(model_desc: ptr)
mdl.get_num_outputs = size aclmdlGetNumOutputs(model_desc: ptr)
mdl.get_input_size_by_index = size aclmdlGetInputSizeByIndex(model_desc: ptr, index: size)
mdl.get_output_size_by_index = size aclmdlGetOutputSizeByIndex(model_desc: ptr, index: size)
mdl.get_input_name_by_index = text aclmdlGetInputNameByIndex(model_desc: ptr, index: size)
mdl.get_output_name_by_index = text aclmdlGetOutputNameByIndex(model_desc: ptr, index: size)
mdl.get_input_index_by_name = ret aclmdlGetInputIndexByName(model_desc: ptr, name: text,
    > index: size)
mdl.get_input_data_type = int aclmdlGetInputDataType(model_desc: ptr, index: size)
mdl.get_output_data_type = int aclmdlGetOutputDataType(model_desc: ptr, index: size)
mdl.get_input_format = int aclmdlGetInputFormat(model_desc: ptr, index: size)
mdl.get_output_format = int aclmdlGetOutputFormat(model_desc: ptr, index: size)
mdl.get_input_dims = ret aclmdlGetInputDims(model_desc: ptr, index: size, > dims: dims)
mdl.get_output_dims = ret aclmdlGetOutputDims(model_desc: ptr, index: size, > dims: dims)
mdl.get_cur_output_dims = ret aclmdlGetCurOutputDims(model_desc: ptr, index: size, > dims: dims)
mdl.create_dataset = ptr aclmdlCreateDataset()
mdl.destroy_dataset = ret aclmdlDestroyDataset(dataset: ptr)
mdl.add_dataset_buffer = ret aclmdlAddDatasetBuffer(+ dataset: ptr, data_buffer: ptr)
mdl.get_dataset_num_buffers = size aclmdlGetDatasetNumBuffers(dataset: ptr)
mdl.get_dataset_buffer = ptr aclmdlGetDatasetBuffer(dataset: ptr, index: size)
mdl.query_size = ret aclmdlQuerySize(file_name: text, > work_size: size, > weight_size: size)
mdl.load_from_file = ret aclmdlLoadFromFile(model_path: text, > model_id: uint)
mdl.load_from_file_with_mem = ret aclmdlLoadFromFileWithMem(model_path: text, > model_id: uint,
    work_ptr: ptr, work_size: size, weight_ptr: ptr, weight_size: size)
mdl.load_from_mem = ret aclmdlLoadFromMem(model: ptr, model_size: size, > model_id: uint)
mdl.load_from_mem_with_mem = ret aclmdlLoadFromMemWithMem(model: ptr, model_size: size,
    > model_id: uint, work_ptr: ptr, work_size: size, weight_ptr: ptr, weight_size: size)
mdl.execute = ret aclmdlExecute(model_id: uint, input: ptr, output: ptr)
mdl.execute_async = ret aclmdlExecuteAsync(model_id: uint, input: ptr, output: ptr, stream: ptr)
mdl.set_dynamic_batch_size = ret aclmdlSetDynamicBatchSize(model_id: uint, dataset: ptr,
    index: size, batch_size: ulong)
mdl.set_dynamic_hw_size = ret aclmdlSetDynamicHWSize(model_id: uint, dataset: ptr, index: size,
    height: ulong, width: ulong)
mdl.unload = ret aclmdlUnload(model_id: uint)
"""
