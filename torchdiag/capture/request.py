"""What the parent asks of a child, as the file that is handed to it."""

import msgspec

from torchdiag.history.profile_options import ProfileOptions


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """Run the target of `options` and put what is measured into `folder` (absolute).

    `only_timed`: warm-up and timed pass only, for trying batch sizes. `pipe` is the descriptor for lines to the parent.
    `preload` is what LD_PRELOAD was before the probe of C++ exceptions was put there.
    """

    options: ProfileOptions
    folder: str
    pipe: int | None = None
    only_timed: bool = False
    preload: str | None = None
