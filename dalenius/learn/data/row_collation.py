"""`RowCollation`: one row at a time to tensors of one public form.

A collate function is called with a list of one row, so that it never sees two people together. What it
returns is padded or cut to public lengths, and rows are put together afterwards. A row that cannot be read,
or that does not have the form after that, is replaced by zeros: no error, warning or shape depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from dalenius.errors import InvalidArgument
from dalenius.learn.data.padding import Padding
from dalenius.learn.data.row_form import Form, blank_leaves, leaves_of, read_form, rebuilt
from dalenius.learn.quiet import FAILURES

Collate = Callable[[list[Any]], Any]
Leaves = list[Tensor]
"""The tensors of a row, or of a batch, in the order of the form."""


@dataclass(frozen=True, eq=False)
class RowCollation:
    """A form, and how rows are brought to it.

    Args:
        form: what every row is brought to.
        collate: called with a list of one row; None where rows hold tensors, arrays and numbers themselves.
    """

    form: Form
    collate: Collate | None
    blank: Leaves = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "blank", blank_leaves(self.form))
        if not self.blank:
            raise InvalidArgument(
                "Rows hold no tensor after collating.", remedy="Return tensors from the data set or collate."
            )

    @classmethod
    def of(cls, row: Any, collate: Collate | None, padding: Padding, *, public: bool) -> RowCollation:
        """Return the collation of rows of the form of an example.

        Args:
            row: the example.
            collate: as for the class.
            padding: what `pad_to` says.
            public: whether the example may be shown in errors of `collate`.

        Raises:
            InvalidArgument: the example cannot be collated, or does not match `pad_to`.
        """
        value = row
        if collate is not None:
            try:
                value = collate([row])
            except FAILURES as error:
                raise InvalidArgument(
                    f"collate failed on a list of one row, the {'declared' if public else 'first'} one.",
                    remedy="Try collate([row]): a batch of one row must be collated as any other.",
                ) from (error if public else None)
        try:
            form = read_form(value, padding, batched=collate is not None, named=False)
        except InvalidArgument:
            raise
        except FAILURES as error:
            raise InvalidArgument(
                "The form of a row could not be read: its containers fail when they are asked for entries.",
                remedy="Return dicts, tuples and tensors.",
            ) from (error if public else None)
        return cls(form, collate)

    def leaves(self, row: Any) -> Leaves:
        """Return the tensors of a row, or raise where it is not of the form."""
        value = row if self.collate is None else self.collate([row])
        return leaves_of(self.form, value, batched=self.collate is not None)

    def write(self, dataset: Any, number: int, batch: Leaves, place: int) -> None:
        """Write a row of a data set into a batch; zeros where reading fails or the row does not fit.

        Args:
            dataset: a data set with `__getitem__`.
            number: which row.
            batch: the tensors of the batch.
            place: where in the batch.
        """
        try:
            for whole, leaf in zip(batch, self.leaves(dataset[number]), strict=True):
                whole[place] = leaf
        except FAILURES:
            for whole in batch:
                whole[place] = 0

    def blanks(self, count: int) -> Leaves:
        """Return the tensors of `count` rows of zeros, in one public order of memory."""
        return [leaf.new_zeros((count, *leaf.shape)) for leaf in self.blank]

    def batch(self, leaves: Leaves) -> Any:
        """Return a batch: the containers of the form around `leaves`."""
        return rebuilt(self.form, iter(leaves))


def joined(parts: Sequence[Leaves]) -> Leaves:
    """Return the tensors of batches end to end, in the order of memory that `blanks` has."""
    if len(parts) == 1:
        return parts[0]
    columns = list(zip(*parts, strict=True))
    sizes = [(sum(len(part) for part in column), *column[0].shape[1:]) for column in columns]
    # Left to itself, torch would choose an order by those of the parts, and so by how many rows there are.
    return [
        torch.cat(column, out=column[0].new_empty(size)) for column, size in zip(columns, sizes, strict=True)
    ]
