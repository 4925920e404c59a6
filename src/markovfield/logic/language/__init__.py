"""The language of Markov logic: first-order formulas with weights (Murphy 19.4.5), read from text or built in Python.

Files in reading order: `syntax` (terms and formulas), `lexer` (text to tokens, tokens to statements), `weights`
(numbers and expressions before a formula), `grammar` (tokens to formulas, by lark), `reader` (programs), `evidence`
(databases of ground atoms), `normal_forms` (clauses and truth tables), `writer`.
"""
