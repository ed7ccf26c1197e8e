"""Bringing a link before the user."""

import os
import sys
import threading
import webbrowser


def show(link: str, print_only: bool) -> None:
    """Open `link` in a browser with windows; print it where there is none, or with `print_only`."""
    if print_only:
        print(link, flush=True)
        return
    print(f"opening {link}", file=sys.stderr)
    if not _has_windows():
        print("there is no display here: open the link in a browser yourself", file=sys.stderr)
        return
    # Some browsers return only when they are closed, and this one is to be served meanwhile.
    threading.Thread(target=_open, args=(link,), daemon=True).start()


def _has_windows() -> bool:
    wanted = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    return sys.platform != "linux" or any(os.environ.get(name) for name in wanted)


def _open(link: str) -> None:
    if not webbrowser.open(link):
        print("no browser was found: open the link yourself", file=sys.stderr)
