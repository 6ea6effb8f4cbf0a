"""Private evaluation: how well a model does on private rows, as charged releases with error bars.

passes      every row's answer, at a place of its own; the model is rehearsed on made-up rows
independence  whether the answer is a function of that row alone: established by layers, or assumed
tables      what a row adds to which counts, in whole steps: one unit of mass in each table
bars        error bars of sums and shares of noisy counts
metrics     accuracy, recall, confusion, calibration, AUC, mean loss from noisy counts: all of it free
evaluating  `evaluate`: planned, charged, counted, released
"""
