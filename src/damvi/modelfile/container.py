"""The outside of a model file: a line that says what it is, a digest, and a zip archive.

The digest covers all that follows it. It tells damage, not forgery: whoever writes a file
can compute it. So what is inside is not trusted either, here or further on.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from .errors import ModelFileError

FORMAT = 2
"""The newest, for three or more classes."""
TWO_CLASSES = 1
"""Enough for two, so that an older damvi reads them."""
MOST_SHRUNK = 50
"""What shrinks by more is stored as it is, so that a small file cannot fill the memory."""
WORTH_SHRINKING = 512
LEVEL = 4
ZLIB_FRAME = 6
"""Bytes that zlib adds, and a zip archive does without."""
MANIFEST = "model.json"
MEMBER = re.compile(r"model\.json|arrays/[0-9]{1,7}\.npy|members/[0-9]{1,7}\.[a-z]{3,5}")
"""All names that an archive may hold."""
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The same date for all members, so that the same model gives the same bytes."""
FIRST_LINE = re.compile(rb"damvi model ([0-9]{1,6})\n")
SECOND_LINE = re.compile(rb"sha256 ([0-9a-f]{64})\n")
LONGEST_LINE = 100


def pack(members: dict[str, bytes], version: int = TWO_CLASSES) -> bytes:
    """A whole model file with these members, of this format."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in members.items():
            assert MEMBER.fullmatch(name), name
            info = zipfile.ZipInfo(name, EPOCH)
            info.create_system, info.external_attr = 3, 0o644 << 16
            if len(content) >= WORTH_SHRINKING:
                shrunk = len(zlib.compress(content, LEVEL)) - ZLIB_FRAME
                if MOST_SHRUNK * shrunk >= len(content) > shrunk:
                    info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, content, compresslevel=LEVEL)
    payload = archive.getvalue()
    digest = hashlib.sha256(payload).hexdigest()
    return f"damvi model {version}\nsha256 {digest}\n".encode() + payload


def unpack(path: Path) -> dict[str, bytes]:
    """The members of a model file, if it is whole."""
    with open(path, "rb") as file:
        version_of(file)
        payload = _read_payload(file)
    try:
        with zipfile.ZipFile(io.BytesIO(payload)) as archive:
            return _read_members(archive)
    except ModelFileError:
        raise
    except Exception as error:  # zipfile has many ways to fail
        raise ModelFileError(f"its archive cannot be read ({error})") from error


def version_of(file: BinaryIO) -> int:
    """The format that the first line tells; it alone says if reading on has any point."""
    first = FIRST_LINE.fullmatch(file.readline(LONGEST_LINE))
    if first is None:
        raise ModelFileError("it does not start as damvi's model files do")
    version = int(first[1])
    if version > FORMAT:
        raise ModelFileError(
            f"it was made by a newer damvi (format {version}, and this one reads up to "
            f"{FORMAT}); upgrade with: pip install --upgrade damvi"
        )
    if version < TWO_CLASSES:
        raise ModelFileError(
            f"it has format {version}, which this damvi does not read; fit the model again"
        )
    return version


def _read_payload(file: BinaryIO) -> bytes:
    """All after the digest, once it is known to fit."""
    second = SECOND_LINE.fullmatch(file.readline(LONGEST_LINE))
    if second is None:
        raise ModelFileError("its second line holds no digest; it is damaged")
    payload = file.read()
    if hashlib.sha256(payload).hexdigest() != second[1].decode():
        raise ModelFileError(
            "its content does not fit its digest: it is cut short or damaged; copy it "
            "again from where it came, or fit the model again"
        )
    return payload


def _read_members(archive: zipfile.ZipFile) -> dict[str, bytes]:
    members: dict[str, bytes] = {}
    infos = archive.infolist()
    for info in infos:
        if not MEMBER.fullmatch(info.filename):
            raise ModelFileError(f"its {info.filename[:80]!r} is no part of a model")
        if info.filename in members:
            raise ModelFileError(f"it holds {info.filename} twice")
        members[info.filename] = b""
        if info.file_size > MOST_SHRUNK * max(info.compress_size, 1):
            raise ModelFileError(
                f"{info.filename} would unpack to {info.file_size:,} bytes from "
                f"{info.compress_size:,}"
            )
    held = len(archive.fp.getbuffer()) if isinstance(archive.fp, io.BytesIO) else 0
    if sum(info.compress_size for info in infos) > held:
        raise ModelFileError("its members overlap")
    for info in infos:
        members[info.filename] = archive.read(info)  # checks the sum, and stops at the size
    return members
