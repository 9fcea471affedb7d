"""The fast engine: the same search in compiled kernels, for spaces of millions of states. Importing it starts numba."""
