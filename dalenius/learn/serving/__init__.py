"""Private prediction: a model that is never published answers questions, each charged to an account.

ensemble    models of disjoint shards, so that one unit has a say in one of them; secret
aggregates  a noisy plurality of their votes, a noisy mean of their numbers
service     what an answer costs, and how many answers a promise has
session     `ask`: charged, answered, remembered; refused where nothing is left
"""
