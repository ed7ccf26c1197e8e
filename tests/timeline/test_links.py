import numpy as np
from hand import trace
from written import arrow, call, event, kernel, operator

from torchdiag.timeline import links


def launch_of(found, row: int) -> int:
    return int(links.launches(found, np.array([row]))[0])


def bare_kernel(start: int, place, **args):
    return event("kernel", "k", start, 5, place, args)


def test_work_and_call_share_a_correlation():
    found = trace(call(0, 1, 8), call(2, 1, 9), kernel(10, 5, 9), operator(0, 9))
    assert launch_of(found, 2) == 1


def test_correlation_0_is_none():
    assert launch_of(trace(call(0, 1, 0), kernel(10, 5, 0)), 1) == -1


def test_work_launched_before_the_trace_is_unlinked():
    assert launch_of(trace(call(0, 1, 8), kernel(10, 5, 7)), 1) == -1


def test_of_several_calls_the_one_that_launches_or_copies_wins_then_the_earliest():
    query = call(0, 1, 5, name="hipGetDevice")
    assert launch_of(trace(query, call(9, 1, 5), call(4, 1, 5), kernel(20, 5, 5)), 3) == 2
    assert launch_of(trace(query, call(9, 1, 5, name="cudaMemcpyAsync"), kernel(20, 5, 5)), 2) == 1
    assert launch_of(trace(query, call(9, 1, 5, name="hipMemcpyWithStream"), kernel(20, 5, 5)), 2) == 1
    sync = call(9, 1, 5, name="hipStreamSynchronize")
    assert launch_of(trace(query, sync, kernel(20, 5, 5)), 2) == 0


def test_a_graph_launch_owns_all_work_of_its_correlation():
    found = trace(call(0, 1, 5, name="cudaGraphLaunch"), kernel(10, 5, 5), kernel(20, 5, 5))
    assert links.launches(found, np.array([1, 2])).tolist() == [0, 0]


def test_an_operator_with_the_correlation_is_no_call():
    found = trace(event("cpu_op", "aten::mm", 0, 5, (100, 1), {"correlation": 5}), kernel(10, 5, 5))
    assert launch_of(found, 1) == -1


def test_without_a_correlation_the_flow_that_arrives_at_the_start_tells():
    host, device = (100, 1), (0, 7)
    flow = [arrow("s", 31, 2, host), arrow("f", 31, 10, device)]
    assert launch_of(trace(call(2, 1), bare_kernel(10, device), *flow), 1) == 0
    assert launch_of(trace(call(2, 1), bare_kernel(10, (0, 8)), *flow), 1) == -1
    assert launch_of(trace(call(2, 1), bare_kernel(11, device), *flow), 1) == -1
    other = [arrow("s", 31, 2, host, "fwdbwd"), arrow("f", 31, 10, device, "fwdbwd")]
    assert launch_of(trace(call(2, 1), bare_kernel(10, device), *other), 1) == -1


def test_a_flow_leaves_from_a_call_rather_than_from_an_operator():
    host, device = (100, 1), (0, 7)
    flow = [arrow("s", 31, 2, host), arrow("f", 31, 10, device)]
    found = trace(operator(2, 50), operator(2, 40), bare_kernel(10, device), *flow)
    assert launch_of(found, 2) == 1
    found = trace(operator(2, 50), call(2, 9, name="cudaGetDevice"), bare_kernel(10, device), *flow)
    assert launch_of(found, 2) == 1


def test_the_operators_of_traces_before_kineto_stand_for_calls():
    host, device = ("CPU functions", 1), ("CUDA functions", 0)
    found = trace(
        event(None, "mul", 0, 90, host, {}),
        event(None, "add", 100, 90, host, {}),
        arrow("s", 0, 100, host, "cpu_to_cuda"),
        arrow("f", 0, 103, device, "cpu_to_cuda"),
        event(None, "add", 103, 80, device, {}),
    )
    assert launch_of(found, 4) == 1


def external(start: int, external_id: int, name: str = "hipLaunchKernel"):
    return event("cuda_runtime", name, start, 1, (100, 1), {"External id": external_id})


def test_work_and_calls_of_an_external_id_pair_up_in_time_when_they_are_as_many():
    works = [bare_kernel(30, (0, 7), **{"External id": 4}), bare_kernel(20, (0, 7), **{"External id": 4})]
    calls = [external(2, 4), external(1, 4), external(0, 4, "hipGetDevice")]
    assert links.launches(trace(*works, *calls), np.array([0, 1])).tolist() == [2, 3]


def test_with_other_counts_all_work_of_an_external_id_goes_to_its_first_call():
    works = [bare_kernel(start, (0, 7), **{"External id": 4}) for start in (30, 20, 40)]
    found = trace(*works, external(2, 4), external(1, 4))
    assert links.launches(found, np.array([0, 1, 2])).tolist() == [4, 4, 4]


def test_an_external_id_says_nothing_of_work_that_has_a_correlation():
    work = bare_kernel(30, (0, 7), **{"External id": 4, "correlation": 9})
    assert launch_of(trace(work, external(2, 4)), 0) == -1


def test_no_rows_have_no_launches():
    assert links.launches(trace(call(0, 1, 1)), np.empty(0, np.int64)).tolist() == []
