"""Rules for products of matrices, and for operators on the last two dimensions."""

from __future__ import annotations

from torch import Tensor

from dalenius.learn.dataflow.operations import APART, VARIES, Operation, Place
from dalenius.learn.dataflow.states import AXIS, PRIVATE, TOTAL, VIRTUAL, mixed

_TRAILING = (
    "_cdist_forward _euclidean_dist linalg_inv_ex linalg_det _linalg_det _linalg_slogdet linalg_cholesky_ex "
    "_linalg_solve_ex "
    "_linalg_svd linalg_qr _linalg_eigh linalg_matrix_exp linalg_solve_triangular linalg_lu_factor_ex "
    "cholesky_inverse cholesky_solve"
)


def product(op: Operation) -> None:
    """Multiply matrices, or stacks of them: mm, bmm, addmm, baddbmm, mv.

    The batch may be the rows of the left factor, the columns of the right one, or the leading dimension of a
    stack, and must not be summed over.
    """
    left, right = _factors(op)
    if TOTAL in op.kinds:
        op.mix("is not linear in a sum over examples")
        return
    if left.shape[-1] and left.shape[-1] % VIRTUAL == 0:
        op.put_all(mixed(op.name, "sums over the batch"))
        return
    place = _placed(op, left, right)
    added = op["self"] if op.name in ("addmm", "baddbmm", "addmv") else None
    if isinstance(place, tuple) and added is not None:
        own = op.common([added], op.results[0].dim()) if op.kind(added) == AXIS else place
        if own != place:
            place = APART
        elif op.kind(added) != AXIS and op.varies(added, place, op.results[0].dim()):
            place = VARIES
    elif place is None and added is not None and op.kind(added) in PRIVATE:
        place = op.common([added], op.results[0].dim())
    if isinstance(place, tuple):
        factors = [left, right] + ([] if added is None else [added])
        op.put_placed(op.results[0], op.joint(*factors), place)
    elif op.private:
        op.put_all(mixed(op.name, place or "sums over the batch"))
    else:
        op.put_all(None)


def _factors(op: Operation) -> tuple[Tensor, Tensor]:
    if op.name in ("mm", "bmm"):
        return op["self"], op["mat2"]
    if op.name in ("addmv", "mv"):
        return (op["self"] if op.name == "mv" else op["mat"]), op["vec"]
    names = ("mat1", "mat2") if op.name in ("addmm", "_addmm_activation") else ("batch1", "batch2")
    return op[names[0]], op[names[1]]


def _placed(op: Operation, left: Tensor, right: Tensor) -> Place | str | None:
    """Return the place of the batch in a product, a text that says why there is none, or None if public."""
    first, second = op.place(left), op.place(right)
    kinds = op.kind(left), op.kind(right)
    # Public factors whose copies lie elsewhere are plain public ones.
    if kinds[0] in PRIVATE and kinds[1] not in PRIVATE and second is not None and second[0] != 0:
        second = None
    if kinds[1] in PRIVATE and kinds[0] not in PRIVATE and first is not None and first[0] != 0:
        first = None
    rows, columns = left.dim() - 2, right.dim() - 1
    if (kinds[0] == AXIS and first is None) or (kinds[1] == AXIS and second is None):
        return "needs the batch in one dimension"
    if left.dim() == 3 and ((first and first[0] == 0) or (second and second[0] == 0)):
        return _stacked(op, left, right, first, second)
    if first is not None and first[0] == rows and kinds[1] not in PRIVATE:
        return first
    if second is not None and second[0] == columns and right.dim() > 1 and kinds[0] not in PRIVATE:
        return second
    return "multiplies examples with each other" if kinds[0] and kinds[1] else None


def _stacked(
    op: Operation, left: Tensor, right: Tensor, first: Place | None, second: Place | None
) -> Place | str | None:
    place = first if first is not None and first[0] == 0 else second
    assert place is not None
    for tensor, own in ((left, first), (right, second)):
        if op.kind(tensor) == AXIS and own != place:
            return APART
        if op.kind(tensor) != AXIS and op.varies(tensor, place, tensor.dim()):
            return VARIES
    return place


def trailing(op: Operation) -> None:
    """Work on the last two dimensions of every matrix of a stack, which may be the examples."""
    lead = max(op.tensors, key=lambda tensor: tensor.dim())
    place = op.common(op.tensors, lead.dim())
    stacked = all(tensor.dim() == lead.dim() for tensor in op.tensors)
    if isinstance(place, tuple) and place[0] < lead.dim() - 2 and stacked:
        for tensor in op.results:
            op.put_placed(tensor, AXIS, place)
    else:
        # Vectors beside a stack of matrices are not aligned as matrices are.
        op.mix(place if isinstance(place, str) else "works along the batch")


def vectors(op: Operation) -> None:
    """Multiply along a dimension (linalg_cross), broadcasting the rest."""
    place = op.common(op.tensors, op.results[0].dim())
    if isinstance(place, tuple) and place[0] != op.dimension("dim", op.results[0]):
        op.put_placed(op.results[0], AXIS, place)
    else:
        op.mix(place if isinstance(place, str) else "works along the batch")


def trilinear(op: Operation) -> None:
    """Multiply three tensors with dimensions of size 1 put in, and sum over some (bilinear layers)."""
    summed, places = set(op["sumdim"]), set()
    for number in (1, 2, 3):
        tensor, new = op[f"i{number}"], set(op[f"expand{number}"])
        kept = [i for i in range(tensor.dim() + len(new)) if i not in new]
        if op.kind(tensor) == AXIS:
            place = op.place(tensor)
            places.add(None if place is None else (kept[place[0]], place[1]))
        elif op.kind(tensor) in PRIVATE or any(size % VIRTUAL == 0 for size in tensor.shape):
            places.add(None)
    place = places.pop() if len(places) == 1 else None
    if place is None or place[0] in summed:
        op.mix("multiplies examples with each other")
    else:
        gone = sum(number < place[0] for number in summed)
        op.put_placed(op.results[0], AXIS, (place[0] - gone, place[1]))


RULES = (
    dict.fromkeys(["mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "_addmm_activation"], product)
    | dict.fromkeys(_TRAILING.split(), trailing)
    | {"linalg_cross": vectors, "_trilinear": trilinear}
)
