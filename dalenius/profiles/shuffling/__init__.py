"""The pair of one report hidden in a shuffled crowd, and the tables by which it is evaluated."""
