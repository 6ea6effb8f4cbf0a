"""The pair of an epoch in which each unit takes part in one step, and how it is evaluated."""
