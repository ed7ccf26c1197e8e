"""The compiled library and the ctypes door to it."""
