"""What the exporters call things: one place for every vendor and every age of the format.

Adding a vendor means adding rows to the tables of this file. The tables are plain data; the functions below them turn
them into one code a row, deciding once a distinct text.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torchdiag.trace.columns import Trace


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
    "module_hierarchy": ("Module Hierarchy",),
    "kernel_backend": ("kernel_backend",),
    "kernel_file": ("kernel_file",),
    "sync_kind": ("cuda_sync_kind",),
    "direction": ("direction",),
    "metadata_name": ("name",),
    "labels": ("labels",),
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


def kinds(trace: Trace) -> NDArray[np.uint8]:
    """uint8[n]: the `Kind` of each row."""
    raise NotImplementedError


def calls(trace: Trace) -> NDArray[np.uint8]:
    """uint8[n]: the `Call` of each row."""
    raise NotImplementedError
