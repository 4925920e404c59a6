"""``markovfield demo``: a diagnosis, a noisy image and a junction tree, with pictures and a page to keep.

Files, in reading order: `steps`, what is run and shown as code; `tour`, which runs it; `page`, what is left behind.
"""
