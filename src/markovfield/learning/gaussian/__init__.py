"""Learning of Gaussian graphical models: their numbers on a given graph, and the graph itself.

Sources: Murphy 19.4.4 (zeros of the precision and of the covariance), 19.5.7.3 (IPF for Gaussian models), 19.5.7.4
(closed form and conjugate posterior of decomposable ones).
"""
