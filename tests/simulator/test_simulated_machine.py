"""The simulated machine, against times counted by hand."""

import ast
import sys
from pathlib import Path

import pytest
from simulator.caching_allocator import CachingAllocator
from simulator.simulated_machine import Costs, Kernel, Machine, Signal
from simulator.training_parts import Loader

MIB = 2**20
EXACT = Costs(
    launch_call_ns=5,
    graph_launch_ns=9,
    copy_call_ns=6,
    sync_call_ns=3,
    event_call_ns=1,
    launch_latency_ns=2,
    kernel_gap_ns=1,
    graph_gap_ns=0,
    sync_return_ns=4,
    module_load_ns=0,
    malloc_ns=50,
    free_ns=20,
    host_alloc_ns=10,
    host_alloc_ns_per_mib=7,
    staging_ns=30,
    last_chunk_ns=100,
    pinned_bytes_per_us=1_000_000,
    pageable_bytes_per_us=500_000,
    copy_setup_ns=0,
    jitter=0,
)
GEMM = Kernel("gemm")


def played(*programs, **settings) -> Machine:
    """A machine on which each program has run on a thread of its own, from zero."""
    machine = Machine(costs=EXACT, **settings)
    for number, program in enumerate(programs):
        host = machine.thread(number + 1)
        machine.start(host, program(host))
    machine.run()
    return machine


def works(machine: Machine) -> list[tuple[int, int]]:
    return [(work.start_ns, work.end_ns) for work in machine.works]


def calls(machine: Machine) -> list[tuple[str, int, int]]:
    spans = sorted(machine.spans, key=lambda span: span.start_ns)
    return [(span.name, span.start_ns, span.end_ns) for span in spans if span.kind == "cuda_runtime"]


def test_a_stream_runs_kernels_one_after_another_and_the_host_does_not_wait():
    def program(host):
        yield from host.launch(GEMM, 100)
        yield from host.launch(GEMM, 100)

    machine = played(program)
    assert calls(machine) == [("cudaLaunchKernel", 0, 5), ("cudaLaunchKernel", 5, 10)]
    assert works(machine) == [(7, 107), (108, 208)]


def test_streams_run_side_by_side():
    def program(host):
        yield from host.launch(GEMM, 100, stream=7)
        yield from host.launch(GEMM, 100, stream=8)

    assert works(played(program)) == [(7, 107), (12, 112)]


def test_a_stream_is_waited_for_and_a_free_one_is_not():
    def program(host):
        yield from host.launch(GEMM, 100, stream=7)
        yield from host.synchronize(8)
        yield from host.synchronize(7)
        yield from host.synchronize(7)

    assert [end - start for _, start, end in calls(played(program))[1:]] == [3, 107 + 4 - 8, 3]


def test_the_device_is_waited_for_on_all_streams():
    def program(host):
        yield from host.launch(GEMM, 300, stream=7)
        yield from host.launch(GEMM, 100, stream=8)
        yield from host.synchronize(None)

    assert calls(played(program))[-1] == ("cudaDeviceSynchronize", 10, 311)


def test_a_full_queue_holds_the_launch_until_there_is_room():
    def program(host):
        for _ in range(4):
            yield from host.launch(GEMM, 100)

    machine = played(program, queue_depth=2)
    # The first has started when the fourth comes; the second and the third wait, and the second starts at 108.
    assert [end for _, _, end in calls(machine)] == [5, 10, 15, 108]
    assert works(machine) == [(7, 107), (108, 208), (209, 309), (310, 410)]


def test_a_blocking_launch_returns_after_its_kernel():
    def program(host):
        yield from host.launch(GEMM, 100)
        yield from host.launch(GEMM, 100)

    machine = played(program, launch_blocking=True)
    assert calls(machine) == [("cudaLaunchKernel", 0, 111), ("cudaLaunchKernel", 111, 222)]
    assert works(machine) == [(7, 107), (118, 218)]


def test_the_first_launch_of_a_kernel_loads_it():
    def program(host):
        yield from host.launch(GEMM, 10)
        yield from host.launch(GEMM, 10)

    machine = Machine(costs=Costs(jitter=0, launch_call_ns=5, module_load_ns=70))
    host = machine.thread(1)
    machine.start(host, program(host))
    machine.run()
    assert [end - start for _, start, end in calls(machine)] == [75, 5]
    assert [(span.start_ns, span.end_ns) for span in machine.spans if span.kind == "overhead"] == [(5, 75)]


@pytest.mark.parametrize(
    ("nbytes", "pinned", "call_ns", "work"),
    [
        (MIB, True, 6, (8, 8 + 1_048)),
        (MIB, False, 36 + 2_097 - 100, (36, 36 + 2_097)),
        (1_000, False, 6, (8, 9)),
    ],
    ids=["pinned", "pageable", "pageable but small"],
)
def test_only_large_uploads_from_pageable_memory_hold_the_host(nbytes, pinned, call_ns, work):
    def program(host):
        yield from host.copy("HtoD", nbytes, pinned=pinned)

    machine = played(program)
    assert works(machine) == [work]
    assert calls(machine) == [("cudaMemcpyAsync", 0, call_ns)]


def test_a_download_to_pageable_memory_waits_for_what_is_before_it():
    def program(host):
        yield from host.launch(GEMM, 100)
        yield from host.copy("DtoH", 2_000, pinned=False)
        yield from host.copy("DtoH", 2_000, pinned=True)

    machine = played(program)
    assert works(machine)[1:] == [(108, 110), (122, 124)]
    assert calls(machine)[1:] == [("cudaMemcpyAsync", 5, 114), ("cudaMemcpyAsync", 114, 120)]


def test_copies_of_one_direction_share_an_engine():
    def program(host):
        yield from host.copy("HtoD", 100_000, pinned=True, stream=7)
        yield from host.copy("HtoD", 100_000, pinned=True, stream=8)
        yield from host.copy("DtoH", 100_000, pinned=True, stream=9)

    assert works(played(program)) == [(8, 108), (108, 208), (20, 120)]


def test_an_event_holds_a_stream_back_but_not_the_host():
    def program(host):
        yield from host.launch(GEMM, 100, stream=7)
        ready = yield from host.record(7)
        yield from host.wait_event(ready, 8)
        yield from host.launch(GEMM, 10, stream=8)
        yield from host.synchronize_event(ready)

    machine = played(program)
    assert works(machine) == [(7, 107), (107, 117)]
    assert calls(machine)[1:] == [
        ("cudaEventRecord", 5, 6),
        ("cudaStreamWaitEvent", 6, 7),
        ("cudaLaunchKernel", 7, 12),
        ("cudaEventSynchronize", 12, 111),
    ]


def test_a_graph_is_one_call_for_all_its_kernels():
    def program(host):
        yield from host.launch_graph([(GEMM, 10), (GEMM, 20)])

    machine = played(program)
    assert calls(machine) == [("cudaGraphLaunch", 0, 9)]
    assert works(machine) == [(11, 21), (21, 41)]
    assert machine.works[0].call is machine.works[1].call


def test_memory_is_freed_when_the_device_is_done_and_allocated_at_once():
    def program(host):
        yield from host.launch(GEMM, 100)
        yield from host.allocate()
        yield from host.free()
        yield from host.allocate_pinned(3 * MIB)

    assert calls(played(program))[1:] == [
        ("cudaMalloc", 5, 55),
        ("cudaFree", 55, 127),
        ("cudaHostAlloc", 127, 127 + 10 + 21),
    ]


def test_threads_take_turns_by_their_clocks():
    def early(host):
        host.spend(10)
        yield from host.launch(GEMM, 100)

    def late(host):
        host.spend(12)
        yield from host.launch(GEMM, 100)
        host.spend(1)
        yield from host.launch(GEMM, 100)

    machine = played(late, early)
    assert [(work.call.thread, work.start_ns) for work in machine.works] == [(2, 17), (1, 118), (1, 219)]


def test_a_thread_waits_for_another_ones_signal():
    done = Signal()

    def waiting(host):
        yield from host.wait(done)
        yield from host.launch(GEMM, 10)

    def working(host):
        host.spend(40)
        yield from host.turn()
        host.machine.set(done, host.now)

    assert calls(played(waiting, working)) == [("cudaLaunchKernel", 40, 45)]


def test_threads_that_wait_for_ever_are_an_error():
    def waiting(host):
        yield from host.wait(Signal())

    with pytest.raises(RuntimeError, match="1 threads wait for ever"):
        played(waiting)


def test_calls_belong_to_the_operator_around_them():
    def program(host):
        host.begin("cpu_op", "aten::mm", {"External id": 31})
        yield from host.launch(GEMM, 10)
        host.end()
        yield from host.launch(GEMM, 10)

    first, second = (span for span in played(program).spans if span.kind == "cuda_runtime")
    assert first.args["External id"] == 31
    assert "External id" not in second.args
    assert second.args["correlation"] == first.args["correlation"] + 1


def test_workers_make_batches_in_parallel_and_only_as_far_ahead_as_they_were_asked():
    loader = Loader(workers=2, batch_us=0.1, prefetch=1)
    assert [loader.ready_ns(0, 1_000), loader.ready_ns(1, 1_010)] == [1_000, 1_050]
    loader._asked_ns += [1_030, 1_400]  # when the loop took the first and the second batch
    assert [loader.ready_ns(2, 1_500), loader.ready_ns(3, 1_500)] == [1_130, 1_500]


def test_workers_that_are_asked_in_time_never_rest():
    loader = Loader(workers=2, batch_us=0.1, prefetch=3)
    assert [loader.ready_ns(batch, 0) for batch in range(6)] == [0, 50, 100, 150, 200, 250]


def test_the_pool_serves_what_was_given_back():
    pool = CachingAllocator()
    assert [pool.take(3 * MIB), pool.take(3 * MIB)] == [False, False]
    pool.give_back()
    assert [pool.take(4 * MIB), pool.take(3 * MIB), pool.take(3 * MIB)] == [True, True, False]


def test_small_blocks_share_a_segment():
    pool = CachingAllocator()
    assert [pool.take(900_000) for _ in range(3)] == [False, True, False]


def test_an_emptied_pool_has_to_ask_again():
    pool = CachingAllocator()
    pool.take(3 * MIB), pool.take(100)
    pool.give_back()
    assert pool.empty() == 2
    assert [pool.take(3 * MIB), pool.take(100)] == [False, False]


def test_the_simulator_knows_nothing_but_python():
    here = Path(__file__).parent
    for source in here.glob("*.py"):
        if source.name.startswith("test_"):
            continue
        for node in ast.walk(ast.parse(source.read_text())):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert name.partition(".")[0] in sys.stdlib_module_names | {"simulator"}, source.name
