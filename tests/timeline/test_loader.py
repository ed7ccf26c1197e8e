from hand import trace
from written import annotation, frame, operator

from torchdiag.timeline import loader

FRAME = "/usr/lib/python3/site-packages/torch/utils/data/dataloader.py(708): __next__"
ANNOTATION = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"


def test_loading_is_known_by_annotation_and_by_frame_for_each_thread():
    found = trace(
        annotation(0, 10, ANNOTATION),
        frame(5, 10, FRAME),
        frame(40, 10, FRAME.replace("/", "\\"), thread=2),
        frame(50, 5, FRAME, thread=2),
        operator(100, 5, ANNOTATION),
        annotation(110, 5, FRAME),
        annotation(120, 5, "enumerate(DataPipe)#__next__"),
    )
    told = {track: (start.tolist(), end.tolist()) for track, (start, end) in loader.loading(found).items()}
    assert told == {0: ([0], [15]), 1: ([40], [55])}
    assert loader.loader_events(found).tolist() == [0, 1, 2, 3]


def test_a_trace_without_a_loader_loads_nothing():
    assert loader.loading(trace(operator(0, 5))) == {}
