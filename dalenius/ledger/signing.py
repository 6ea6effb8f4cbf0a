"""Signed receipts: whoever has the public key can tell that the ledger's owner wrote one.

The signature (Ed25519) is over the canonical JSON of what a receipt states of its release and its entry. What
is done to a release afterwards is free, and not signed.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dalenius.errors import InvalidArgument, MissingExtra
from dalenius.release import Receipt

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def new_key(path: str | os.PathLike[str]) -> str:
    """Make a private key file that only its owner may read; the public key is returned, as PEM text."""
    ed25519, forms = _library()
    key = ed25519.Ed25519PrivateKey.generate()
    text = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption())
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidArgument("There is a file of that name.", remedy="Choose another path.") from None
    with os.fdopen(handle, "wb") as file:
        file.write(text)
    return public_key(key)


def read_key(path: str | os.PathLike[str]) -> Ed25519PrivateKey:
    """The private key in a file."""
    ed25519, forms = _library()
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        key = forms.load_pem_private_key(Path(path).read_bytes(), None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        raise _no_key("private") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise _no_key("private")
    found: Ed25519PrivateKey = key
    return found


def public_key(key: Ed25519PrivateKey) -> str:
    """The public key of a private one, as PEM text."""
    _, forms = _library()
    written = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    return written.decode()


def sign(receipt: Receipt, key: Ed25519PrivateKey) -> Receipt:
    """The receipt with its entry's signature."""
    if receipt.entry is None:
        raise InvalidArgument(
            "An uncharged receipt is not signed.", remedy="Charge the release to an account."
        )
    return replace(receipt, entry=replace(receipt.entry, signature=key.sign(_message(receipt)).hex()))


def is_signed(receipt: Receipt, public: str) -> bool:
    """Whether the owner of a public key, given as PEM text, signed this receipt."""
    ed25519, forms = _library()
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    try:
        key = forms.load_pem_public_key(public.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise _no_key("public") from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise _no_key("public")
    if receipt.entry is None or receipt.entry.signature is None:
        return False
    try:
        key.verify(bytes.fromhex(receipt.entry.signature), _message(receipt))
    except (InvalidSignature, ValueError):
        return False
    return True


def _library() -> tuple[Any, Any]:
    """The modules of keys and of their forms, when first used."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as absent:
        raise MissingExtra(
            "Receipts are signed, and signatures checked, by cryptography.",
            remedy="Run: pip install cryptography",
        ) from absent
    return ed25519, serialization


def _message(receipt: Receipt) -> bytes:
    plain = receipt.plain()
    stated = {name: plain[name] for name in ("loss", "mechanism", "numerics", "unit", "bounds", "tainted")}
    entry = {name: value for name, value in plain["entry"].items() if name != "signature"}
    text = json.dumps({"dalenius": 1, **stated, "entry": entry}, sort_keys=True, separators=(",", ":"))
    return text.encode()


def _no_key(kind: str) -> InvalidArgument:
    return InvalidArgument(
        f"This is not an Ed25519 {kind} key in PEM.", remedy="Make one with dalenius.ledger.new_key(path)."
    )
