"""What the exporters call things: one place for every vendor and every age of the format.

Adding a vendor means adding rows to the tables of this file. The tables are plain data; `classify.py` turns them into
one code a row, deciding once a distinct text.
"""

import re
from enum import IntEnum


class Kind(IntEnum):
    """What an event with a duration is; `OTHER` for everything else."""

    OTHER = 0
    OPERATOR = 1
    PYTHON = 2
    ANNOTATION = 3
    RUNTIME = 4
    OVERHEAD = 5
    KERNEL = 6
    MEMCPY = 7
    MEMSET = 8
    DEVICE_ANNOTATION = 9
    SYNC_RECORD = 10


class Call(IntEnum):
    """What a runtime call does, as the partition distinguishes it."""

    NONE = 0
    SYNC = 1
    ALLOCATION = 2
    LAUNCH = 3
    COPY = 4
    OTHER = 5


class Work(IntEnum):
    """What a device activity does, in the order in which the partition looks for it."""

    COMPUTE = 1
    COMMUNICATION = 2
    MEMORY = 3
    TRANSFER = 4


# Argument columns: `columns.Args` field -> JSON keys. The scanner is built from this table.
INT_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "correlation": ("correlation", "Correlation ID", "correlation_id", "connection_id"),
    "external_id": ("External id", "external id"),
    "stream": ("stream", "stream_id", "Stream Id"),
    "device": ("device",),
    "python_id": ("Python id",),
    "python_parent_id": ("Python parent id",),
    "python_module_id": ("Python module id",),
    "copied_bytes": ("bytes", "size"),
    "sequence_number": ("Sequence number",),
    "forward_thread": ("Fwd thread id",),
    "event_index": ("Ev Idx", "Profiler Event Index"),
    "registers": ("registers per thread",),
    "shared_memory": ("shared memory",),
    "graph": ("graph id",),
    "graph_node": ("graph node id",),
    "input_elements": ("In msg nelems",),
    "output_elements": ("Out msg nelems",),
    "group_size": ("Group size",),
    "rank": ("Rank",),
    "address": ("Addr",),
    "memory_bytes": ("Bytes",),
    "total_allocated": ("Total Allocated",),
    "total_reserved": ("Total Reserved",),
    "memory_device": ("Device Id",),
    "memory_device_type": ("Device Type",),
    "wait_on_stream": ("wait_on_stream",),
    "wait_on_correlation": ("wait_on_cuda_event_record_corr_id",),
    "source_device": ("fromDevice",),
    "target_device": ("toDevice",),
    "sort_index": ("sort_index",),
}
FLOAT_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "occupancy": ("est. achieved occupancy %",),
    "blocks_per_sm": ("blocks per SM",),
    "warps_per_sm": ("warps per SM",),
    "bandwidth": ("memory bandwidth (GB/s)",),
}
TEXT_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "grid": ("grid", "grid dim"),
    "block": ("block", "block dim"),
    "copy_kind": ("kind",),
    "collective": ("Collective name",),
    "message_dtype": ("dtype",),
    "input_split": ("In split size",),
    "output_split": ("Out split size",),
    "process_group": ("Process Group Name",),
    "process_group_ranks": ("Process Group Ranks",),
    "input_dims": ("Input Dims", "Input dims"),
    "input_types": ("Input type",),
    "input_strides": ("Input Strides",),
    "concrete_inputs": ("Concrete Inputs",),
    "call_stack": ("Call stack",),
    "call_from": ("CallFrom",),
    "module_hierarchy": ("Module Hierarchy",),
    "kernel_backend": ("kernel_backend",),
    "kernel_file": ("kernel_file",),
    "sync_kind": ("cuda_sync_kind",),
    "direction": ("direction",),
    "metadata_name": ("name",),
    "labels": ("labels",),
    "raised_at": ("raised at", "thrown in"),
    "handled_at": ("handled at",),
}

CATEGORY_KINDS: dict[str, Kind] = {
    "cpu_op": Kind.OPERATOR,
    "Operator": Kind.OPERATOR,
    "python_function": Kind.PYTHON,
    "user_annotation": Kind.ANNOTATION,
    "cuda_runtime": Kind.RUNTIME,
    "cuda_driver": Kind.RUNTIME,
    "hip_runtime": Kind.RUNTIME,
    "xpu_runtime": Kind.RUNTIME,
    "xpu_driver": Kind.RUNTIME,
    "mtia_runtime": Kind.RUNTIME,
    "privateuse1_runtime": Kind.RUNTIME,
    "privateuse1_driver": Kind.RUNTIME,
    "Runtime": Kind.RUNTIME,
    "overhead": Kind.OVERHEAD,
    "kernel": Kind.KERNEL,
    "Kernel": Kind.KERNEL,
    "mtia_ccp_events": Kind.KERNEL,
    "hpu_op": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY,
    "Memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET,
    "Memset": Kind.MEMSET,
    "gpu_user_annotation": Kind.DEVICE_ANNOTATION,
    "cuda_sync": Kind.SYNC_RECORD,
}

PROCESS_KINDS: dict[str, Kind] = {
    "CPU functions": Kind.OPERATOR,
    "CUDA functions": Kind.KERNEL,
    "Ascend Hardware": Kind.KERNEL,
    "Communication": Kind.OTHER,
    "HCCL": Kind.OTHER,
    "CANN": Kind.RUNTIME,
}
"""What a row without a category is, by its pid or by the `process_name` of its pid."""

NAME_KINDS: dict[str, tuple[tuple[re.Pattern[str], Kind], ...]] = {
    "Operator": ((re.compile(r"ProfilerStep|Optimizer\.|enumerate\("), Kind.ANNOTATION),),
    "mtia_ccp_events": (
        (re.compile(r"dma_request"), Kind.MEMCPY),
        (re.compile(r"event_(wait|record)"), Kind.OTHER),
    ),
    "CUDA functions": ((re.compile(r".*Memcpy"), Kind.MEMCPY), (re.compile(r".*Memset"), Kind.MEMSET)),
    "Ascend Hardware": (
        (re.compile(r"MEMCPY|SDMA"), Kind.MEMCPY),
        (re.compile(r"(?i)memset"), Kind.MEMSET),
        (re.compile(r"(?i)(event|notify)[_ ]?(wait|record|reset)|place_?holder|profiler_trace"), Kind.OTHER),
    ),
    "Communication": ((re.compile(r"(?i)hcom|hccl"), Kind.KERNEL),),
    "HCCL": ((re.compile(r"(?i)hcom|hccl"), Kind.KERNEL),),
}
"""Rows whose category (or process, for rows without one) does not tell alone: the first pattern that matches from the
start of the name decides."""

STEP_MARK = "ProfilerStep#"
"""How the name of a step's annotation starts."""

LAUNCH_FLOWS = frozenset({"ac2g", "async_cpu_to_gpu", "async", "cpu_to_cuda", "HostToDevice"})
"""Categories of the flow events that lead from a launch to the work it launched."""

CALLS: tuple[tuple[re.Pattern[str], Call], ...] = (
    # Waiting for the device. `ur` and `ze` are the two layers of Intel's runtime, `aclrt` is Huawei's.
    (re.compile(r"[sS]ynchroni[sz]e$|[sS]ynchroni[sz]e_(ptsz|v\d)"), Call.SYNC),
    (re.compile(r"[sS]ynchronize(Stream|Device|Event|Context)"), Call.SYNC),
    (re.compile(r"^ur(EventWait|QueueFinish)$"), Call.SYNC),
    # A copy that is not asynchronous returns when it is done. `ur*Memcpy` only queues; graph nodes only describe.
    (re.compile(r"^(?!ur)(?!.*(Async|Graph)).*[mM]emcpy"), Call.SYNC),
    # Device memory, pinned host memory, virtual memory maps.
    (re.compile(r"Malloc|Free|HostAlloc|Host(Unr|R)egister|Mem(Host)?Alloc"), Call.ALLOCATION),
    (re.compile(r"Mem(Map|Unmap|Create|Release|SetAccess|AddressReserve|AddressFree)"), Call.ALLOCATION),
    (re.compile(r"USM(Host|Device|Shared)Alloc|^ze(Virtual|Physical)Mem|AddressReserve"), Call.ALLOCATION),
    (re.compile(r"Launch|^Node@launch|^runFunction|ExecuteCommandLists|CommandBufferEnqueue"), Call.LAUNCH),
    (re.compile(r"EnqueueCommandBuffer"), Call.LAUNCH),
    (re.compile(r"^(?!.*Graph).*([mM]emcpy|[mM]emset)"), Call.COPY),
    (re.compile(r"Append(Memory|Image)(Copy|Fill)|USMFill|Mem(Buffer|Image)(Copy|Fill|Read|Write)"), Call.COPY),
)
"""What a runtime call does, by its name: the first pattern found decides, `Call.OTHER` when none is."""

BLOCKING_COPY = re.compile(r"[mM]emcpy")
"""Tells the copies among the calls that synchronise."""

GRAPH_LAUNCH = "GraphLaunch"
"""Part of the name of a call that replays a captured graph."""

COMMUNICATION_WORDS = (
    *("nccl", "rccl", "hccl", "oneccl", "msccl", "uccl", "ccl::", "ccl_", "hcom_"),
    *("nvshmem", "rocshmem", "roc_shmem", "ishmem", "symm_mem", "mori::", "deep_ep", "deepep", "hybrid_ep"),
    *("all_reduce", "allreduce", "all_gather", "allgather", "reduce_scatter", "reducescatter"),
    *("all_to_all", "alltoall", "moe_a2a", "moea2a", "a2a_dispatch", "a2a_combine"),
    *("multimem", "cross_device_", "lamport", "userbuffers", "quick_reduce", "quickreduce"),
)
"""A kernel whose name holds one of these, in any case, moves data between devices ..."""

LOCAL_WORDS = (
    *("warpallreduce", "warp_all_reduce", "waveallreduce", "wave_all_reduce", "blockallreduce", "block_all_reduce"),
    *("smallreduce", "small_reduce", "smallgather", "small_gather"),
)
"""... but these are parts of names that mean nothing of the kind, ..."""

FUSED_PREFIX = "triton_"
"""... and a compiled fusion only carries the names of the operators it was made from."""

PEER_COPY = re.compile(r"PtoP|P2P|peer", re.IGNORECASE)
"""Copies between devices, by name or direction."""

HOST_COPY = re.compile(
    r"""[HM](2|to)D | D(2|to)[HM]
    | Host[_ ]?To[_ ]?Device | Device[_ ]?To[_ ]?Host
    | (Host|Pageable|Pinned)\ *->\ *Device | Device\ *->\ *(Host|Pageable|Pinned)""",
    re.VERBOSE | re.IGNORECASE,
)
"""Copies between host and device, by name or direction."""

LOADER_METHOD = "__next__"
"""Part of the name of whatever fetches the next batch."""

LOADER_ANNOTATION = re.compile(r"enumerate\(DataLoader\)#.*__next__$")
"""The annotation of torch's data loader while the next batch is fetched."""

LOADER_FRAME = re.compile(r"(^|.*[/\\])torch[/\\]utils[/\\]data[/\\]dataloader\.py\(\d+\): __next__$")
"""The Python frame of the same."""

DEVICE_KINDS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"hip|roctracer|rocprofiler"), "ROCm"),
    (re.compile(r"mtia"), "MTIA"),
    (re.compile(r"hpu_op"), "HPU"),
    (re.compile(r"Ascend|CANN"), "NPU"),
    (re.compile(r"xpu|ur[A-Z]|ze[A-Z]"), "XPU"),
    (re.compile(r"cuda|cupti|cu[A-Z]|CUDA"), "CUDA"),
)
"""What kind of device a trace is of, by what its top-level keys, runtime calls, categories or processes start with."""
