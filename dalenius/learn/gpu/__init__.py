"""What is done on a GPU by kernels of its own, in Triton; each has a twin in plain code beside it."""
