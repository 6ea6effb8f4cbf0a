"""Batches whose shapes are public: rows are read, collated and padded one at a time.

batch_reader    `BatchReader`: batches by row numbers, filled up with blank examples, read ahead
padding         `Pad`, and `pad_to`: the public lengths that the tensors of a row are padded or cut to
row_form        the structure, shapes and types that every row is brought to
row_collation   one row to tensors of that form; a row that cannot be brought to it becomes zeros
row_seeds       random augmentation that depends on a row and on the step, and on no other row
row_workers     rows read in this process or by worker processes, with the same result
tensor_rows     rows of plain tensors, which are of one form by construction

The package imports nothing of `learn` but `quiet`, and knows nothing of models, losses and accounts.
"""
