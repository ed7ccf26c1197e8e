"""The other models of the catalogue."""

from torchdiag.models.entry import Entry

ENTRIES: tuple[Entry, ...] = ()
