"""Signed receipts: whoever has the public key can tell that the ledger's owner wrote one.

The signature (Ed25519) is over the canonical JSON of what a receipt states of its release and its entry. What
is done to a release afterwards is free, and not signed.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from dalenius.errors import InvalidArgument
from dalenius.release import Receipt


def new_key(path: str | os.PathLike[str]) -> str:
    """Make a private key file that only its owner may read; the public key is returned, as PEM text."""
    key = Ed25519PrivateKey.generate()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise InvalidArgument("There is a file of that name.", remedy="Choose another path.") from None
    with os.fdopen(handle, "wb") as file:
        file.write(text)
    return public_key(key)


def read_key(path: str | os.PathLike[str]) -> Ed25519PrivateKey:
    """The private key in a file."""
    try:
        key = load_pem_private_key(Path(path).read_bytes(), None)
    except (OSError, ValueError, TypeError):
        raise _no_key("private") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key("private")
    return key


def public_key(key: Ed25519PrivateKey) -> str:
    """The public key of a private one, as PEM text."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def sign(receipt: Receipt, key: Ed25519PrivateKey) -> Receipt:
    """The receipt with its entry's signature."""
    if receipt.entry is None:
        raise InvalidArgument(
            "An uncharged receipt is not signed.", remedy="Charge the release to an account."
        )
    return replace(receipt, entry=replace(receipt.entry, signature=key.sign(_message(receipt)).hex()))


def is_signed(receipt: Receipt, public: str) -> bool:
    """Whether the owner of a public key, given as PEM text, signed this receipt."""
    try:
        key = load_pem_public_key(public.encode())
    except ValueError:
        raise _no_key("public") from None
    if not isinstance(key, Ed25519PublicKey):
        raise _no_key("public")
    if receipt.entry is None or receipt.entry.signature is None:
        return False
    try:
        key.verify(bytes.fromhex(receipt.entry.signature), _message(receipt))
    except (InvalidSignature, ValueError):
        return False
    return True


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
