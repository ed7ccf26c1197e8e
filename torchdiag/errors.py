"""The one exception a user's mistake raises."""


class TorchdiagError(Exception):
    """A mistake the user can mend: what happened, where, and what to do.

    The command line prints the message and exits with code 2, without a traceback.
    """
