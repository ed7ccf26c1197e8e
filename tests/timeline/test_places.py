"""Where idle time comes from, on traces small enough to count by hand."""

from hand import trace
from hypothesis import given
from reference.reader import trace_of
from strategies import traces
from written import annotation, arrow, call, copy, event, frame, kernel, mark, operator, overhead, parsed

from torchdiag.timeline.partition import partition
from torchdiag.timeline.places import places
from torchdiag.timeline.result import Cause


def causes(*events, top=None, **top_level):
    """The causes of the only device, by name."""
    data = trace(*events, **top_level)
    (device,) = partition(data).devices
    return {cause.cause.value: cause for cause in places(data, device.blocks(), device.activities, top)}


def told(*events, **top_level):
    """(label, nanoseconds, stretches) of every place of every cause that has one."""
    found = causes(*events, **top_level)
    return {
        name: [(place.label, place.idle_ns, place.count) for place in cause.places]
        for name, cause in found.items()
        if cause.places
    }


FIRST = [call(0, 10, 1), kernel(20, 30, 1)]


def test_every_cause_is_there_once_in_order():
    assert list(causes(*FIRST)) == [cause.value for cause in Cause]


def test_python_is_told_by_the_innermost_persons_frame():
    found = told(
        *FIRST,
        frame(0, 500, "train.py(3): main"),
        frame(60, 100, "train.py(88): step"),
        frame(70, 80, "torch/nn/modules/module.py(1532): _call_impl"),
        frame(80, 10, "<built-in method item of Tensor object at 0x7f>"),
        call(200, 10, 2),
        kernel(210, 10, 2),
    )
    # The gap 50..200: main 50..60, step 60..160 (torch's frames are step's), main 160..200.
    assert found["python"] == [("train.py:88 step", 100, 1 + 1 + 1 + 1 + 1), ("train.py:3 main", 50, 2)]


def test_a_frame_carries_its_parts():
    found = causes(*FIRST, frame(0, 500, "/me/train.py(88): step"), call(200, 10, 2), kernel(210, 10, 2))
    (place,) = found["python"].places
    assert (place.file, place.line, place.function, place.operator) == ("/me/train.py", 88, "step", None)
    assert place.event == 2


def test_the_running_line_is_told_where_a_called_frame_knows_it():
    found = told(
        *FIRST,
        frame(0, 500, "train.py(80): step"),
        frame(60, 30, "torch/nn/modules/module.py(1532): _call_impl", called_from="train.py:88"),
        frame(70, 10, "torch/nn/modules/linear.py(5): forward", called_from="torch/nn/modules/module.py:1534"),
        frame(100, 20, "<built-in method item of Tensor object at 0x7f>", called_from="train.py:91"),
        frame(130, 70, "other.py(7): helper", called_from="train.py:95"),
        frame(150, 20, "<built-in function len>", called_from="other.py:9"),
        call(200, 10, 2),
        kernel(210, 10, 2),
    )
    assert {name: ns for name, ns, _ in found["python"]} == {
        "train.py:80 step": 10 + 10 + 10,  # 50..60, 90..100, 120..130: no called frame tells the line
        "train.py:88 step": 30,
        "train.py:91 step": 20,
        "other.py:7 helper": 20 + 30,
        "other.py:9 helper": 20,
    }


def test_framework_is_told_by_the_outermost_operator_and_its_frame():
    found = told(
        *FIRST,
        frame(0, 500, "model.py(12): forward"),
        operator(50, 160, "aten::linear"),
        operator(60, 140, "aten::addmm"),
        call(200, 10, 2),
        kernel(210, 10, 2),
    )
    assert found["framework"] == [("aten::linear at model.py:12 forward", 150, 2)]
    assert found["launch"] == [("aten::linear at model.py:12 forward", 10, 1)]


def test_without_stacks_the_annotation_says_where():
    found = told(
        *FIRST,
        annotation(0, 500, "## forward ##"),
        operator(60, 150, "aten::item"),
        call(70, 50, name="cudaStreamSynchronize"),
        call(200, 10, 2),
        kernel(210, 10, 2),
    )
    assert found["python"] == [("## forward ##", 10, 1)]
    assert found["sync"] == [("aten::item in ## forward ##", 50, 1)]
    assert found["framework"] == [("aten::item in ## forward ##", 90, 2)]


def test_a_call_outside_of_operators_speaks_for_itself():
    found = told(
        *FIRST,
        frame(0, 500, "train.py(88): step"),
        call(60, 50, name="cudaDeviceSynchronize"),
        call(120, 30, name="cudaMalloc"),
        call(160, 10, name="cudaMemsetAsync"),
        call(175, 5, name="cudaEventRecord"),
        call(200, 10, 2),
        kernel(210, 10, 2),
    )
    assert found["sync"] == [("cudaDeviceSynchronize at train.py:88 step", 50, 1)]
    assert found["allocation"] == [("cudaMalloc at train.py:88 step", 30, 1)]
    assert found["copy_call"] == [("cudaMemsetAsync at train.py:88 step", 10, 1)]
    assert found["runtime"] == [("cudaEventRecord at train.py:88 step", 5, 1)]


def test_with_nothing_recorded_python_is_told_by_what_came_next():
    found = told(*FIRST, mark(1, 0, 500), operator(150, 60, "aten::mm"), call(200, 10, 2), kernel(210, 10, 2))
    # The gap 50..210 until the operator, then 220..500 to the end of the window.
    assert found["python"] == [("ProfilerStep", 280, 1), ("before aten::mm", 100, 1)]


def test_with_nothing_at_all_it_is_told_that_nothing_is_known():
    # The trace ends idle, and no event of any thread covers that.
    found = told(mark(1, 0, 100), mark(2, 100, 0), *FIRST, mark(3, 300, 1))
    assert ("no host event recorded", 200, 1) in found["python"]


def test_step_numbers_do_not_part_places():
    found = told(mark(1, 0, 100), mark(2, 100, 100), *FIRST)
    assert found["python"] == [("ProfilerStep", 150, 2)]


def test_garbage_collection_is_named():
    found = told(*FIRST, frame(0, 500), frame(60, 100, "Python GC"), call(200, 10, 2), kernel(210, 10, 2))
    assert found["python"][0] == ("Python GC at train.py:88 step", 100, 1)


def test_frames_of_nobody_are_named_themselves():
    found = told(*FIRST, frame(0, 500, "threading.py(359): wait"), call(200, 10, 2), kernel(210, 10, 2))
    assert found["python"] == [("threading.py:359 wait", 150, 1)]


def test_a_builtin_outside_of_any_frame_has_no_address():
    name = "<built-in method acquire of lock object at 0x7f1>"
    other = "<built-in method acquire of lock object at 0x7f2>"
    found = told(*FIRST, frame(50, 70, name), frame(120, 80, other), call(200, 10, 2), kernel(210, 10, 2))
    assert found["python"] == [("<built-in method acquire of lock object>", 150, 2)]


def test_data_loading_is_told_by_a_persons_code_inside_the_loader():
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    found = told(
        *FIRST,
        frame(0, 500, "train.py(80): main"),
        annotation(60, 120, loader),
        frame(70, 100, "data.py(9): __getitem__"),
        operator(80, 20, "aten::stack"),
        call(200, 10, 2),
        kernel(210, 10, 2),
    )
    assert found["dataloader"] == [
        ("data.py:9 __getitem__", 100, 3),
        ("_SingleProcessDataLoaderIter.__next__ at train.py:80 main", 20, 2),
    ]


def test_the_loaders_own_frame_counts_as_the_loader():
    found = told(
        *FIRST,
        frame(50, 120, "torch/utils/data/dataloader.py(630): __next__"),
        call(200, 10, 2),
        kernel(210, 10, 2),
    )
    assert found["dataloader"] == [("DataLoader.__next__", 120, 1)]


def test_call_stacks_of_old_traces_stand_in_for_frames():
    stack = "torch/nn/m.py(1): __call__;model.py(47): forward;train.py(9): <module>"
    item = operator(60, 150, "aten::relu")
    item["args"]["Call stack"] = stack
    found = causes(*FIRST, item, call(200, 10, 2), kernel(210, 10, 2))
    (place,) = found["framework"].places
    assert (place.label, place.file, place.line) == ("aten::relu at model.py:47 forward", "model.py", 47)


def test_a_call_stack_tells_what_ran_inside_the_loader():
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    item = operator(80, 20, "aten::div")
    item["args"]["Call stack"] = (
        "vision.py(138): to_tensor;torch/utils/data/_utils/fetch.py(44): <listcomp>;train.py(42): <module>"
    )
    found = told(*FIRST, annotation(60, 120, loader), item, call(200, 10, 2), kernel(210, 10, 2))
    assert ("vision.py:138 to_tensor", 20, 1) in found["dataloader"]


def backward_events(*, flow):
    forward = operator(0, 10, "aten::mul")
    node = operator(100, 110, "autograd::engine::evaluate_function: MulBackward0", thread=2)
    inner = operator(110, 95, "MulBackward0", thread=2)
    if not flow:
        forward["args"] = {"Sequence number": 4, "Fwd thread id": 0}
        node["args"] = {"Sequence number": 4, "Fwd thread id": 1}
    else:
        node["args"] = {"Sequence number": 99, "Fwd thread id": 1}
    arrows = [arrow("s", 1, 0, (100, 1), "fwdbwd"), arrow("f", 1, 110, (100, 2), "fwdbwd")] if flow else []
    return [
        frame(0, 40, "model.py(12): forward"),
        forward,
        call(2, 5, 1),
        kernel(20, 30, 1),
        node,
        inner,
        call(200, 5, 2, thread=2),
        kernel(205, 10, 2),
        *arrows,
    ]


def test_backward_threads_are_traced_to_the_forward_line():
    for flow in (False, True):
        found = causes(*backward_events(flow=flow))
        (place,) = found["framework"].places
        assert place.label == "backward of aten::mul at model.py:12 forward"
        assert (place.operator, place.line, place.idle_ns) == ("backward of aten::mul", 12, 100)


def test_a_persons_code_in_the_backward_pass_is_its_own_place():
    found = told(*backward_events(flow=False), frame(120, 60, "function.py(7): backward", thread=2))
    assert ("function.py:7 backward", 60, 1) in found["python"]


def test_an_unknown_forward_operator_leaves_the_nodes_name():
    events = [item for item in backward_events(flow=False) if item["name"] != "aten::mul"]
    assert [label for label, _, _ in told(*events)["framework"]] == ["MulBackward0"]


def test_regions_of_compiled_code_are_looked_into():
    found = told(
        *FIRST,
        operator(50, 160, "Torch-Compiled Region: 0/0"),
        operator(60, 145, "CompiledFunction"),
        operator(100, 105, "triton_poi_fused_add_0"),
        call(200, 3, 2),
        kernel(210, 10, 2),
    )
    labels = [label for label, _, _ in found["framework"]]
    assert labels == ["triton_poi_fused_add_0", "CompiledFunction", "Torch-Compiled Region: 0/0"]


def test_waits_are_told_by_what_was_waited_for():
    found = told(
        call(0, 10, 1),
        kernel(20, 30, 1),
        operator(30, 15, "aten::mm"),
        call(31, 5, 2),
        kernel(90, 10, 2),
        call(40, 4, 3),
        call(46, 3, 4),
        kernel(120, 10, 4, name="void at::native::copy<4, int>(int, float*)"),
    )
    assert found["queued"] == [("aten::mm", 40, 1), ("at::native::copy", 20, 1)]


def test_work_without_a_call_is_told_by_its_name():
    found = told(*FIRST, kernel(90, 10, name="void (anonymous namespace)::softmax<4>(float*)"))
    assert found["unattributed"] == [("softmax", 40, 1)]


def test_the_profilers_own_work_is_named():
    found = told(*FIRST, frame(0, 500), overhead(60, 40), call(200, 10, 2), kernel(210, 10, 2))
    assert found["profiler"] == [("Activity Buffer Request at train.py:88 step", 40, 1)]


def test_an_unseen_replay_is_told_by_its_launch():
    found = told(*FIRST, frame(0, 500), call(60, 10, 9, name="cudaGraphLaunch"), call(200, 10, 2), kernel(210, 10, 2))
    # Three stretches: the launch, Python until the next launch, and that one.
    assert found["unknown"] == [("cudaGraphLaunch at train.py:88 step", 150, 3)]


def test_places_are_longest_first_and_ties_go_by_label():
    events = [
        *FIRST,
        frame(50, 40, "b.py(1): f"),
        frame(90, 40, "a.py(1): f"),
        frame(130, 70, "c.py(1): f"),
        call(200, 10, 2),
        kernel(210, 10, 2),
    ]
    found = causes(*events)["python"]
    assert [place.label for place in found.places] == ["c.py:1 f", "a.py:1 f", "b.py:1 f"]
    short = causes(*events, top=1)["python"]
    assert [place.label for place in short.places] == ["c.py:1 f"]
    assert (short.idle_ns, short.count) == (found.idle_ns, found.count) == (150, 3)


def test_functions_of_one_name_in_two_files_are_two_places():
    found = causes(
        *FIRST,
        frame(50, 50, "a/utils.py(1): f"),
        frame(100, 100, "b/utils.py(1): f"),
        call(200, 10, 2),
        kernel(210, 10, 2),
    )
    assert [(place.label, place.file) for place in found["python"].places] == [
        ("utils.py:1 f", "b/utils.py"),
        ("utils.py:1 f", "a/utils.py"),
    ]


def test_copies_count_as_the_work_waited_for():
    found = told(*FIRST, call(30, 5, 2, name="cudaMemcpyAsync"), copy(90, 10, 2))
    assert found["queued"] == [("Memcpy HtoD", 40, 1)]


def test_the_event_of_a_place_is_where_it_took_longest():
    events = [
        *FIRST,
        frame(50, 20, "a.py(1): f"),
        frame(70, 100, "a.py(1): f"),
        call(200, 10, 2),
        kernel(210, 10, 2),
    ]
    (place, *_) = causes(*events)["python"].places
    assert (place.idle_ns, place.event) == (120, 3)


def test_an_event_of_another_kind_is_no_trouble():
    odd = event("something_new", "x", 60, 10, (100, 1), {})
    assert told(*FIRST, odd, frame(0, 500), call(200, 10, 2), kernel(210, 10, 2))["python"] == [
        ("train.py:88 step", 150, 1)
    ]


@given(traces())
def test_places_hold_all_idle_time(events):
    data = trace_of(parsed(events), {})
    for device in partition(data).devices:
        found = places(data, device.blocks(), device.activities, None)
        assert sum(cause.idle_ns for cause in found) == device.states.idle
        assert sum(cause.count for cause in found) == len(device.charges)
        for number, cause in enumerate(found):
            length = device.charges.end_ns - device.charges.start_ns
            assert cause.idle_ns == int(length[device.charges.cause == number].sum())
            assert cause.idle_ns == sum(place.idle_ns for place in cause.places)
            assert cause.count == sum(place.count for place in cause.places)
            assert all(place.label for place in cause.places)
