"""Data-flow analysis of a training loop: which tensors depend on which examples of a batch.

    states            what is known of a tensor: public, per example along an axis, a total, or mixed
    interpreter       runs a torch function on shapes alone and derives the states of its results
    operations        the arguments of one operator, and how tensors align along the batch
    pointwise, views, reductions, products, indexing, layers, factories
                      the rules for operators, one table by name (`rules`)
    private_numbers   values read out of private tensors: they print and add up, and steer nothing
    kept_tensors      private tensors that outlive their loop
    warning_records   warnings of torch, which are not recorded where private values may cause them
    provenance        the operation that mixed examples, and its line in the user's code

The soundness claim: a tensor whose state is "per example along an axis" has, at every position of that axis,
values that are a function of that example, of public values and of random numbers drawn for that position
alone. Every rule preserves the claim; an operator without a rule gives "mixed". Nothing here looks at values.
This package imports torch, `dalenius.errors` and nothing else of the library.
"""
