"""The last iterate of noisy gradient descent, where no other is seen."""

from dalenius.losses.iteration.last_iterate import LastIterate

__all__ = ["LastIterate"]
