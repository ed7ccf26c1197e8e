"""When an allocation of device memory needs the driver: the pool that PyTorch keeps."""

from collections import Counter

LARGE_BYTES = 2**20
SEGMENT_BYTES = 2 * 2**20


class CachingAllocator:
    """Large blocks are segments of their own, reused for the same rounded size only; small ones share segments.

    What a step takes is given back at its end, all at once, which is enough for steps that repeat.
    """

    def __init__(self) -> None:
        self._cached: Counter[int] = Counter()
        self._taken: list[int] = []
        self._small_bytes = self._small_capacity = 0

    def take(self, nbytes: int) -> bool:
        """Whether the pool has the memory; if not, the driver has to be asked, and the pool has grown by the answer."""
        if nbytes < LARGE_BYTES:
            self._small_bytes += nbytes
            grown = self._small_bytes > self._small_capacity
            self._small_capacity += SEGMENT_BYTES if grown else 0
            return not grown
        rounded = -(-nbytes // SEGMENT_BYTES) * SEGMENT_BYTES
        self._taken.append(rounded)
        if self._cached[rounded]:
            self._cached[rounded] -= 1
            return True
        return False

    def give_back(self) -> None:
        """Everything taken is free again."""
        self._cached.update(self._taken)
        self._taken.clear()
        self._small_bytes = 0

    def empty(self) -> int:
        """Hand all free segments to the driver; how many there were."""
        count = self._cached.total()
        self._cached.clear()
        if not self._small_bytes:
            count += self._small_capacity // SEGMENT_BYTES
            self._small_capacity = 0
        return count
