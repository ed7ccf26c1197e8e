"""How a step tells the environment's time from the learner's: a mark in the trace around the one, and only that.

What an action costs to fetch from the device is paid before the mark opens, or the environment would be charged with
the learner's kernels.
"""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from torch.autograd.profiler import record_function

from torchdiag.models.workload import ENVIRONMENT_MARK


def environment() -> record_function:
    """Around a call into an environment, and nothing else."""
    return record_function(ENVIRONMENT_MARK)
