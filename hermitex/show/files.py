"""Files that are complete or absent: written under another name in the same folder and renamed; every failure is one line.

An existing file is replaced and keeps its mode; through a link, the target of the link is replaced. A terminal, a pipe or another
device (/dev/stdout) receives the bytes directly; any other place that is not a file is refused. An open file that is named by its
number is written at its current position: opened again, it would be written from its beginning.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from hermitex.errors import BadInput

STDOUT = "/dev/stdout"
_STREAMS = {STDOUT: 1, "/dev/stderr": 2}
_NUMBERED = re.compile(r"/(?:dev|proc/self)/fd/(\d{1,6})\Z")


def check_place(path: str | os.PathLike[str] | None) -> None:
    """Refuse a path that cannot be written, before any work is done for it; None means that no file is wanted.

    Raises
    ------
    BadInput : it is a folder, or in no folder, or something there may not be written; one line.
    """
    if path is None:
        return
    try:
        target, mode = _place(path)
    except (OSError, ValueError) as error:
        _refuse(path, error)
    if not target.name or (mode is not None and stat.S_ISDIR(mode)):
        _refuse(path, "it is a folder" if str(path) else "the name is empty")
    if mode is not None and not (stat.S_ISREG(mode) or _takes_bytes(mode)):
        _refuse(path, "it is not a file")
    if mode is not None and not os.access(target, os.W_OK):
        _refuse(path, "it may not be written")
    if _direct(target, mode):
        return
    if not target.parent.is_dir():
        _refuse(path, f"the folder {str(target.parent)[:80]!r} does not exist")
    if not os.access(target.parent, os.W_OK):
        _refuse(path, "the folder is not writable")


def check_source(path: str | os.PathLike[str], most: int | None = None) -> None:
    """Refuse what is not read to its end: a folder, a device, a pipe, and a file of more than `most` bytes.

    A missing file is not refused here: opening it gives the error.

    Raises
    ------
    BadInput : one line.
    """
    try:
        found = os.stat(path)
    except ValueError as error:  # a 0, or half a character
        raise BadInput(f"{path} is not a file name: {error}") from None
    except (OSError, TypeError):
        return
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a device or a pipe, not a file"
        raise BadInput(f"{path} is {kind}")
    if most is not None and found.st_size > most:
        raise BadInput(f"{path} has {found.st_size:,} bytes; {most:,} at most are read")


def write_whole(path: str | os.PathLike[str], content: bytes | str) -> Path:
    """Write a file so that it is at every moment either the old one or the new one; a failure leaves nothing behind.

    Raises
    ------
    BadInput : it cannot be written (no room, no right, no folder); one line. BrokenPipeError : the reader has what it wanted.
    """
    raw = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    check_place(path)
    temporary = ""
    try:
        target, mode = _place(path)
        if _direct(target, mode):
            number = number_of(path)
            for stream in filter(None, (sys.stdout, sys.stderr) if number is not None else ()):
                stream.flush()  # what was said before comes before
            with open(target if number is None else number, "ab", buffering=0, closefd=number is None) as device:
                while raw:
                    raw = raw[device.write(raw):]
            return Path(path)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:50]}.")
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask() if mode is None else stat.S_IMODE(mode))
        os.replace(temporary, target)
        temporary = ""
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        _refuse(path, error)
    finally:  # an interrupt leaves nothing either
        if temporary:
            Path(temporary).unlink(missing_ok=True)
    return Path(path)


def number_of(path: str | os.PathLike[str]) -> int | None:
    """The number of an open file that a path names by it, 1 for /dev/stdout; None for all others."""
    named = _NUMBERED.match(str(path))
    return int(named[1]) if named else _STREAMS.get(str(path))


def _place(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """(the path, or what a link there points to; the mode of what is there, None if nothing is)."""
    target = Path(path)
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        mode = None
    if target.is_symlink() and not _direct(target, mode):
        target = Path(os.path.realpath(target))
    return target, mode


def _direct(target: Path, mode: int | None) -> bool:
    """Whether it takes bytes as they come: a device, a pipe, or an open file by its number (/dev/stdout, /dev/fd/3)."""
    return mode is not None and (_takes_bytes(mode) or (target.is_symlink() and str(target).startswith(("/dev/", "/proc/"))))


def _takes_bytes(mode: int) -> bool:
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _refuse(path: str | os.PathLike[str], why: OSError | ValueError | str) -> NoReturn:
    reason = why if isinstance(why, str) else (getattr(why, "strerror", None) or str(why)).lower()
    raise BadInput(f"cannot write {str(path)[:80]!r}: {reason}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
