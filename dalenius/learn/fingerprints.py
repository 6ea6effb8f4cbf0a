"""`Fingerprints`: short numbers that tell whether tensors still hold the same bits.

    on a processor   a keyed tag of all bytes (`noise.tags`): two messages of n blocks of 16 bytes have the
                     same one with probability (n + 1)/2¹²⁸ at most
    on a GPU         Σ w_i·r_i modulo 2⁶⁴ over words w_i of 32 bits or less, for random r_i, a number for
                     every few million words (multilinear hashing, Carter and Wegman 1979). The difference of
                     two words has at most 31 factors of two, so that two tensors have the same fingerprint
                     with probability 2⁻³³ at most. Nothing is waited for: a comparison stays on the GPU.

Both hold for tensors that were chosen without knowledge of the key, which follows from that of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from dalenius.noise import tags
from dalenius.noise.stream import StreamKey

PRINTS = 11
"""The first number of the path of the stream that the key of fingerprints comes from."""
CPU = torch.device("cpu")
BUCKET = 1 << 23
"""Words of a fingerprint on a GPU, where every one takes a few kernels."""
_KINDS = {1: torch.int8, 2: torch.int16, 4: torch.int32}


class Fingerprints:
    """Fingerprints under one key.

    Args:
        key: The key of the run.
    """

    def __init__(self, key: StreamKey) -> None:
        bits = key.stream(PRINTS)
        self._secret, self._seed = bits.words(4, np.uint64).tobytes(), bits.integer(63)
        self._keys: dict[tuple[torch.device, int], Tensor] = {}

    @torch.no_grad()
    def of(self, tensors: Sequence[Tensor]) -> dict[torch.device, Tensor]:
        """Return the fingerprints of all tensors together, a vector on every device that they lie on."""
        # What watches torch functions has nothing to see here.
        with torch._C.DisableTorchFunction():
            flat = [_flat(tensor) for tensor in tensors if Tensor.numel(tensor)]
            # Unlike numpy(), DLPack leaves no mark on the memory that says an array shares it.
            here = [np.from_dlpack(words.view(torch.uint8)).data for words in flat if words.device == CPU]
            tag = tags.tag(self._secret, here, tags.quick())
            prints = {CPU: torch.frombuffer(bytearray(tag), dtype=torch.int64)} if here else {}
            sums: dict[torch.device, list[Tensor]] = {}
            for bucket in _buckets(words for words in flat if words.device != CPU):
                words = bucket[0] if len(bucket) == 1 else torch.cat(bucket)
                sums.setdefault(words.device, []).append((words * self._key(words)).sum())
            return prints | {device: torch.stack(parts) for device, parts in sums.items()}

    def _key(self, words: Tensor) -> Tensor:
        size = 1 << max(0, words.numel() - 1).bit_length()
        place = words.device, size
        if place not in self._keys:
            drawn = torch.Generator().manual_seed(self._seed)
            key = torch.randint(-(1 << 63), (1 << 63) - 1, (size,), generator=drawn)
            self._keys[place] = key.to(words.device)
        return self._keys[place][: words.numel()]


def _flat(tensor: Tensor) -> Tensor:
    """Return the entries of a tensor in order, whatever methods were set on the tensor itself."""
    dense = Tensor.detach(tensor)
    dense = dense if dense.layout is torch.strided else dense.to_dense()
    entries = dense.resolve_conj().resolve_neg().contiguous()
    # A single entry is contiguous whatever its stride is, and keeps it in a view.
    return entries.as_strided((entries.numel(),), (1,))


def _buckets(tensors: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Cut tensors into words and these into buckets; those of a bucket are of one type, on one device."""
    waiting: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for flat in tensors:
        for part in flat.view(_KINDS.get(flat.element_size(), torch.int32)).split(BUCKET):
            bucket = waiting.setdefault((part.device, part.dtype), [])
            if sum(other.numel() for other in bucket) + part.numel() > BUCKET:
                yield bucket.copy()
                bucket.clear()
            bucket.append(part)
    yield from (bucket for bucket in waiting.values() if bucket)
