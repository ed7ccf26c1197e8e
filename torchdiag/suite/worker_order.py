"""What a worker is asked, as it comes on its standard input."""

import msgspec

from torchdiag.suite.cases import Case


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Run `case` and put everything into `folder` (absolute), which is its own, as one of `jobs` at a time.

    `device` is that of the options as it is called in this process, which may see one GPU only. `memory_bytes` is the
    limit on what the target uses, None for none. `parent` is who asks.
    """

    case: Case
    folder: str
    device: str
    jobs: int
    memory_bytes: int | None
    parent: int
