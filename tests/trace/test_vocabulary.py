import pytest
from reference.reader import trace_of
from written import Event, call, copy, event, kernel, operator, parsed

from torchdiag.trace import classify
from torchdiag.trace.columns import Strings, Trace
from torchdiag.trace.find_text import holding
from torchdiag.trace.vocabulary import Call, Kind, Work


def trace(*events: Event) -> Trace:
    return trace_of(parsed(list(events)), {})


def kind_of(category: str | None, name: str, pid: object = 100) -> Kind:
    return Kind(trace(event(category, name, 0, 5, (pid, 1), {})).kind[0])


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        ("cpu_op", Kind.OPERATOR),
        ("python_function", Kind.PYTHON),
        ("user_annotation", Kind.ANNOTATION),
        ("cuda_runtime", Kind.RUNTIME),
        ("cuda_driver", Kind.RUNTIME),
        ("hip_runtime", Kind.RUNTIME),
        ("xpu_runtime", Kind.RUNTIME),
        ("mtia_runtime", Kind.RUNTIME),
        ("overhead", Kind.OVERHEAD),
        ("kernel", Kind.KERNEL),
        ("hpu_op", Kind.KERNEL),
        ("gpu_memcpy", Kind.MEMCPY),
        ("gpu_memset", Kind.MEMSET),
        ("gpu_user_annotation", Kind.DEVICE_ANNOTATION),
        ("cuda_sync", Kind.SYNC_RECORD),
        ("Kernel", Kind.KERNEL),
        ("Memcpy", Kind.MEMCPY),
        ("Memset", Kind.MEMSET),
        ("Runtime", Kind.RUNTIME),
        ("Operator", Kind.OPERATOR),
        ("Trace", Kind.OTHER),
        ("cuda_profiler_range", Kind.OTHER),
        (None, Kind.OTHER),
    ],
)
def test_the_category_tells_the_kind(category, kind):
    assert kind_of(category, "anything") == kind


@pytest.mark.parametrize(
    ("category", "name", "kind"),
    [
        ("Operator", "ProfilerStep#3", Kind.ANNOTATION),
        ("Operator", "Optimizer.step#SGD.step", Kind.ANNOTATION),
        ("Operator", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", Kind.ANNOTATION),
        ("Operator", "aten::ProfilerStep", Kind.OPERATOR),
        ("cpu_op", "Optimizer.step", Kind.OPERATOR),
        ("mtia_ccp_events", "dma_request", Kind.MEMCPY),
        ("mtia_ccp_events", "event_wait", Kind.OTHER),
        ("mtia_ccp_events", "event_record", Kind.OTHER),
        ("mtia_ccp_events", "fc-dtype_Float", Kind.KERNEL),
    ],
)
def test_the_name_tells_where_the_category_does_not(category, name, kind):
    assert kind_of(category, name) == kind


@pytest.mark.parametrize(
    ("process", "name", "kind"),
    [
        ("CPU functions", "add", Kind.OPERATOR),
        ("CUDA functions", "add", Kind.KERNEL),
        ("Ascend Hardware", "aclnnMatmul_MatMulV2", Kind.KERNEL),
        ("Ascend Hardware", "MEMCPY_ASYNC", Kind.MEMCPY),
        ("Ascend Hardware", "EVENT_WAIT", Kind.OTHER),
        ("Ascend Hardware", "Notify_Wait", Kind.OTHER),
        ("CANN", "AscendCL@aclrtSynchronizeStream", Kind.RUNTIME),
        ("Communication", "hcom_allReduce__123_0", Kind.KERNEL),
        ("Communication", "Notify_Wait", Kind.OTHER),
        ("Overlap Analysis", "Computing", Kind.OTHER),
    ],
)
def test_rows_without_a_category_are_told_by_their_process(process, name, kind):
    assert kind_of(None, name, process) == kind
    label = {"ph": "M", "name": "process_name", "pid": 6, "tid": 0, "args": {"name": process}}
    assert trace(event(None, name, 0, 5, (6, 1), {}), label).kind[0] == kind


def test_only_complete_events_with_times_have_a_kind():
    whole = operator(0, 5)
    instant = dict(whole, ph="i")
    endless = {key: value for key, value in whole.items() if key != "dur"}
    timeless = {key: value for key, value in whole.items() if key != "ts"}
    backwards = operator(0, -1)
    assert trace(whole, instant, endless, timeless, backwards).kind.tolist() == [Kind.OPERATOR, 0, 0, 0, 0]


def test_a_name_of_the_host_is_no_call():
    assert trace(operator(0, 5, "cudaLaunchKernel"), call(0, 5)).call.tolist() == [Call.NONE, Call.LAUNCH]


CALLS = {
    Call.SYNC: "cudaStreamSynchronize cudaDeviceSynchronize cudaEventSynchronize cuCtxSynchronize hipStreamSynchronize "
    "cuStreamSynchronize_ptsz zeCommandQueueSynchronize zeEventHostSynchronize urEventWait urQueueFinish "
    "synchronizeStream AscendCL@aclrtSynchronizeStreamWithTimeout cudaMemcpy cudaMemcpy2D cudaMemcpyToSymbol "
    "cuMemcpyDtoH_v2 hipMemcpyWithStream hipMemcpyDtoH AscendCL@aclrtMemcpy",
    Call.ALLOCATION: "cudaMalloc cudaFree cudaMallocAsync cudaFreeHost cudaHostAlloc cudaMallocHost cudaHostRegister "
    "cudaHostUnregister cuMemMap cuMemUnmap cuMemCreate cuMemRelease cuMemSetAccess cuMemAddressReserve cuMemAlloc_v2 "
    "hipHostMalloc hipMemCreate zeMemAllocDevice zeMemFree urUSMDeviceAlloc urUSMFree zePhysicalMemCreate",
    Call.LAUNCH: "cudaLaunchKernel cudaLaunchKernelExC cuLaunchKernelEx cudaGraphLaunch hipExtModuleLaunchKernel "
    "urEnqueueKernelLaunch urEnqueueKernelLaunchCustomExp zeCommandListAppendLaunchKernel "
    "zeCommandQueueExecuteCommandLists Node@launch",
    Call.COPY: "cudaMemcpyAsync cudaMemsetAsync cudaMemset cuMemsetD8Async hipMemcpyAsync cudaMemcpyPeerAsync "
    "urEnqueueUSMMemcpy urEnqueueUSMFill urEnqueueMemBufferCopy zeCommandListAppendMemoryCopy "
    "zeCommandListAppendMemoryFill AscendCL@aclrtMemcpyAsync",
    Call.OTHER: "cudaEventRecord cudaStreamWaitEvent cudaEventQuery cudaMemGetInfo cudaGraphAddMemcpyNode "
    "cudaHostGetDevicePointer urKernelSetArgPointer urEnqueueEventsWait cudaStreamIsCapturing INVALID",
}


@pytest.mark.parametrize(("name", "does"), [(name, does) for does, names in CALLS.items() for name in names.split()])
def test_a_call_is_told_by_its_name(name, does):
    assert Call(classify.call_of(name)) == does


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
        "rcclGenericKernel",
        "hcom_allReduce__123_0",
        "ccl::allreduce_kernel",
        "mscclpp::allreduce",
        "nvshmemi_barrier_kernel",
        "void deep_ep::internode::dispatch<true>(int4*)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        "one_shot_all_reduce_kernel",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1>",
    ],
)
def test_kernels_that_talk_to_other_devices_are_communication(name):
    assert classify.kernel_work(name) == Work.COMMUNICATION


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
        "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*>>",
        "triton_poi_fused_all_gather_into_tensor_add_0",
        "void layernorm<WarpAllReduce<float>>",
        "void at::native::gatherTopK<float>",
        "occlusion_kernel",
    ],
)
def test_kernels_that_only_sound_like_it_are_compute(name):
    assert classify.kernel_work(name) == Work.COMPUTE


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("Memcpy HtoD (Pageable -> Device)", Work.TRANSFER),
        ("Memcpy DtoH (Device -> Pinned)", Work.TRANSFER),
        ("Memcpy HtoD", Work.TRANSFER),
        ("CopyHostToDevice", Work.TRANSFER),
        ("CopyDeviceToHost", Work.TRANSFER),
        ("zeCommandListAppendMemoryCopy(M2D)", Work.TRANSFER),
        ("zeCommandListAppendMemoryCopy(D2M)", Work.TRANSFER),
        ("Memcpy (Host -> Device)", Work.TRANSFER),
        ("Memcpy DtoD (Device -> Device)", Work.MEMORY),
        ("CopyDeviceToDevice", Work.MEMORY),
        ("Memcpy PtoP (Device -> Device)", Work.COMMUNICATION),
        ("MEMCPY_ASYNC", Work.MEMORY),
    ],
)
def test_the_direction_of_a_copy_is_told_by_its_name(name, work):
    found = trace(event("gpu_memcpy", name, 0, 5, (0, 7), {}))
    assert classify.works(found, found.kind.nonzero()[0]).tolist() == [work]


@pytest.mark.parametrize(
    ("args", "work"),
    [
        ({"direction": "DEVICE_TO_HOST"}, Work.TRANSFER),
        ({"direction": "HOST_TO_DEVICE"}, Work.TRANSFER),
        ({"direction": "DEVICE_TO_DEVICE"}, Work.MEMORY),
        ({"direction": "PEER_TO_PEER"}, Work.COMMUNICATION),
        ({}, Work.MEMORY),
        ({"fromDevice": 0, "toDevice": 1}, Work.COMMUNICATION),
        ({"fromDevice": 1, "toDevice": 1}, Work.MEMORY),
        ({"fromDevice": 1}, Work.MEMORY),
    ],
)
def test_the_direction_of_a_copy_is_told_by_its_arguments(args, work):
    found = trace(event("mtia_ccp_events", "dma_request", 0, 5, (9, 7), args))
    assert classify.works(found, found.kind.nonzero()[0]).tolist() == [work]


def test_works_come_in_the_order_of_the_rows():
    found = trace(kernel(0, 5), copy(0, 5), event("gpu_memset", "Memset (Device)", 0, 5, (0, 7), {}), kernel(9, 5))
    assert classify.works(found, found.kind.nonzero()[0]).tolist() == [
        Work.COMPUTE,
        Work.TRANSFER,
        Work.MEMORY,
        Work.COMPUTE,
    ]


def test_a_row_without_a_name_is_classified_too():
    nameless = {key: value for key, value in call(0, 5).items() if key != "name"}
    assert trace(nameless).call.tolist() == [Call.OTHER]


def test_texts_that_hold_a_fragment_are_found_within_one_text_only():
    texts = Strings.of(["__next__", "a", "my__next__()", "__ne", "xt__", "", "é__next__"])
    assert holding(texts, "__next__").tolist() == [0, 2, 6]
    assert holding(Strings.of([]), "x").tolist() == []
