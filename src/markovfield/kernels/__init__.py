"""What kernels everywhere share: the compiler, arithmetic, random numbers, sets and forests.

A kernel is a compiled loop: arrays in, arrays out, no Python objects, no names and no exceptions. Kernels of one
algorithm lie beside it as ``*_kernel.py``; here is what several folders use. Files of kernels import other kernels,
NumPy and the compiler, and nothing else of the library (``tests/test_layers.py``).

Files, in reading order:

* `compiler`: the decorator ``kernel``, all compiler flags, and the cache on disk, found by the code alone;
* `compilations`: how long this process has compiled, the line that says so, and the clock that stands still meanwhile;
* `interpreter`: kernels as plain Python, where nothing is compiled yet and the work is small;
* `exponential`, `logarithm`: exp and log as polynomials that loops over arrays can vectorise;
* `log_space`: sums of numbers given by their logs;
* `sigmoid`: the logistic function, in 32 bits as well;
* `simd`, `products`: eight numbers at a time, for rows too short for the loop vectoriser; `tiles`: products of small
  dense blocks kept in registers;
* `random`: streams of xoshiro256++ (Blackman and Vigna 2021), one for each Markov chain or shard, never for a thread;
  `random_lanes`: many of them side by side;
* `bitsets`: sets of vertices as rows of 64-bit words, with a small generator of their own;
* `union_find`: disjoint sets in one array;
* `forest`: an order of a forest of factors, its log Z and exact samples.

Everything on single numbers allocates nothing; `forest` is linear in the cells of its factors. The first call of a
kernel compiles it, which takes far longer than to run it, unless who calls says that there is little to do; other
processes load what was compiled from the cache.
"""
