"""From text to the arrays of sequence models, and scores of what comes back.

Formats and measures are those of others: templates of CRF++ and Wapiti, chunks and their scores as in the CoNLL shared
tasks.

Files, in reading order:

* `sequences`: sequences as flat arrays: references of tokens to attributes, and columns of text;
* `vectoriser`: from dicts, lists of texts or arrays to those; numbers of attributes;
* `_encoding`, `packed_names_kernel`: the same for whole chunks at C speed, and token by token where something is odd;
* `labels`: numbers of labels, schemes of chunks (IOB, IOBES, BILOU), which label may follow which;
* `templates`, `_wapiti_patterns`: feature templates as CRF++ and Wapiti write them;
* `token_features`: attributes of words: neighbours, affixes, shapes, lists of names;
* `_expansion`: attributes of a whole corpus by columns, once for every distinct text;
* `entities`: precision, recall and F1 of chunks, and of single tokens.

All is linear in the references of tokens to attributes; templates and token features build texts only once for each
distinct combination.
"""
