"""The oracle suite: random models, every registered method with every setting, brute force for every claim.

`python -m tests.fuzz` (``make fuzz``) is the long run; `tests/test_fuzz.py` runs the first two thousand seeds.
"""
