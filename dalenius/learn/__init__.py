"""Private training on PyTorch: clipping example by example in one backward pass, exact noise, true accounts.

marks, tape, rules      watch a forward pass: which tensors hold examples, which function meets a parameter
linear … recurrent      what each kind of layer adds to its parameters' gradients, example by example
parts, gradients        norms and weighted sums of these, without ever holding all of them
clipping, adding        clipped sums of a batch, and the noise on them
sampling, loader        how batches are drawn, and what that makes of the loss
rehearsal, private      the run: rehearsed, charged, trained
"""
