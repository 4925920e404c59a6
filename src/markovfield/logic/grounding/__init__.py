"""Grounding: from a program and a database of evidence to a factor graph of ground clauses with tied weights.

Every clause becomes a query of a relational database (DuckDB), which leaves out what the evidence satisfies; the
answers are arrays. Files in reading order: `store` (constants as numbers, evidence as tables), `rules` (formulas to
clauses), `queries` (clauses to SQL, in which there are only numbers), `ground` (ground formulas as arrays),
`determined` (arguments that others determine), `atoms` (names of ground atoms, made when asked for), `relevant` (what
a query depends on), `asked` (what a query means, which predicates are closed), `assemble` (the factor graph),
`network` (all steps in turn), `contradictions` (which hard formulas cannot hold together).

Cost: linear in the groundings that the evidence leaves open, whatever the number of those it satisfies.
"""
