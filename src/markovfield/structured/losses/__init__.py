"""Losses: what a predicted output costs beside the truth (Murphy 19.7.1 and 19.79).

Every loss is at least 0, and 0 for the truth. What a loss is made of decides who can use it:

* `labels`: sums over variables (`Hamming`, `TableLoss`), and `ZeroOne`, of outputs as a whole;
* `parts`: sums over parts of structures, such as labelled spans, arcs and links (`PartLoss`);
* `counts`: functions of how many are right and how many are predicted (`F1`, `PrecisionAtK`);
* `hidden`: labels that stand for hidden states.

`loss` has what they share, and losses by name. The folder `oracles` finds outputs of highest score and loss.
"""
