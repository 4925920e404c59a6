"""What all structures share: families and forms, answers, the verbs, n best by partitioning and lazily.

Reading order: `family` (structures of many instances, scores in one flat pool), `form` (one instance with its scores
and names), `answers`, `verbs`; then `k_best` (Huang and Chiang 2005) and `partitioning` (Lawler 1972).
"""
