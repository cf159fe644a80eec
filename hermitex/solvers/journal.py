"""The files of a sweep in progress:  header.json, and journal.jsonl with one line for each finished chunk.

    {"chunk": 12, "check": "9f86d081884c7d65", "columns": {"q": [0.1, ...], "converged": [true, ...], ...}}

A line is whole or it does not count: it is written in one go and synced before it is believed, a torn last line is cut
off when the sweep is resumed, and a line whose checksum fails is dropped and its chunk solved again. Floats are written
with the digits that give the same bits back; NaN is null, infinity is "inf".
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..errors import BadInput
from ..show.files import write_whole
from .sweep_grid import Grid, json_hash, text_hash

Columns = dict[str, list[Any]]
Packed = dict[str, np.ndarray]  # the same as arrays: a million rows stay in memory until the end
PASSING = "not to be kept"  # the column of chunks that another run may solve: their worker died, or their time was up
_FORMAT = "hermitex sweep 1"


def column_to_json(values: Any) -> list[Any]:
    """A column as JSON writes it: numbers, booleans and strings; NaN as None, infinities as text.

    >>> column_to_json(np.array([0.1, np.nan, np.inf]))
    [0.1, None, 'inf']
    """
    out = []
    for v in np.asarray(values).tolist():
        if isinstance(v, float) and v != v:
            v = None
        elif isinstance(v, float) and v in (float("inf"), float("-inf")):
            v = "inf" if v > 0 else "-inf"
        elif not isinstance(v, bool | int | float | str | type(None)):
            raise BadInput(f"a sweep keeps numbers, booleans and strings, not {type(v).__name__}")
        out.append(v)
    return out


def column_from_json(values: list[Any]) -> np.ndarray:
    """The way back: booleans, whole numbers or text if all are, else floats with NaN for what is missing.

    >>> column_from_json([0.1, None, "inf"])
    array([0.1, nan, inf])
    """
    kinds = {type(v) for v in values if v is not None}
    text = {v for v in values if isinstance(v, str)} - {"inf", "-inf"}
    if kinds == {bool} and None not in values:
        return np.array(values, dtype=bool)
    if text or not [v for v in values if v != ""]:
        return np.array(["" if v is None else v for v in values], dtype=object)
    if kinds == {int} and None not in values:
        return np.array(values, dtype=np.int64)
    return np.array([np.nan if v is None else float(v) for v in values])


def pack_chunk(columns: Columns) -> Packed:
    """A finished chunk as arrays."""
    return {n: column_from_json(v) for n, v in columns.items()}


def join_column(parts: list[np.ndarray]) -> np.ndarray:
    """One column out of those of its chunks; what is missing in a column of text is empty.

    >>> join_column([np.array([1, 2]), np.array([np.nan])])
    array([ 1.,  2., nan])
    """
    if any(p.dtype == object for p in parts):
        return column_from_json([None if isinstance(v, float) and v != v else v for p in parts for v in p.tolist()])
    return np.concatenate(parts)


class Journal:
    """An append-only record of finished chunks in a directory, safe against being killed at any moment."""

    def __init__(self, path: str | os.PathLike[str], grid: Grid, signature: str, *, resume: bool) -> None:
        self.path = Path(path)
        with self._writing():
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = self._locked()
            try:
                self._header(grid, signature, resume)
                self.done = self._read(grid)
                self._file: IO[bytes] = open(self.path / "journal.jsonl", "ab")  # noqa: SIM115 (held until close)
            except BaseException:
                self._lock.close()
                raise

    def append(self, results: Mapping[int, Columns]) -> None:
        """Add finished chunks; when this returns they survive a kill."""
        with self._writing():
            for k, columns in results.items():
                text = json.dumps(columns, allow_nan=False)  # once, for the line and its checksum
                self._file.write(f'{{"chunk": {k}, "check": "{text_hash(text)}", "columns": {text}}}\n'.encode())
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Release the files and the lock; what could not be written was said when it was tried."""
        with suppress(OSError):
            self._file.close()
        self._lock.close()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """A failure of the disk in one line."""
        try:
            yield
        except BadInput:
            raise
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            raise BadInput(f"cannot write to {str(self.path)[:80]!r}: {reason}") from None

    def _locked(self) -> IO[bytes]:
        lock = open(self.path / "lock", "ab")  # noqa: SIM115 (held until close)
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # no such locks on this system: two writers at once are then the caller's care
            pass
        except OSError:
            lock.close()
            raise BadInput(f"another sweep is writing to {self.path}; choose another directory, or wait") from None
        return lock

    def _header(self, grid: Grid, signature: str, resume: bool) -> None:
        file = self.path / "header.json"
        header = {
            "format": _FORMAT,
            "grid": {k: column_to_json(v) for k, v in grid.axes.items()},
            "chunk": grid.chunk,
            "grid_signature": grid.signature,
            "code_signature": signature,
        }
        if not file.exists():
            if (self.path / "journal.jsonl").exists():
                raise BadInput(f"{self.path} holds a journal without its header; choose another directory")
            write_whole(file, json.dumps(header, indent=1) + "\n")
            return
        if not resume:
            raise BadInput(f"{self.path} already holds a sweep; resume it (--resume) or choose another directory")
        try:
            old = json.loads(file.read_text())
        except ValueError:
            raise BadInput(f"{file} is not the header of a sweep; choose another directory") from None
        differs = [k for k in header if not isinstance(old, dict) or old.get(k) != header[k]]
        if differs:
            what = _difference(old, header, differs)
            raise BadInput(f"{self.path} belongs to another sweep ({what}); choose another directory or remove it")

    def _read(self, grid: Grid) -> dict[int, Packed]:
        """The finished chunks, line by line; whatever is torn or damaged is cut out of the file first."""
        file = self.path / "journal.jsonl"
        if not file.exists():
            return {}
        done: dict[int, Packed] = {}
        sound: list[tuple[int, int]] = []
        with open(file, "rb") as lines:
            for line in lines:
                entry = _entry(line)
                if entry is not None and entry[0] not in done and 0 <= entry[0] < grid.chunks:
                    done[entry[0]] = pack_chunk(entry[1])
                    sound.append((lines.tell() - len(line), len(line.rstrip(b"\n"))))
        if sum(length + 1 for _, length in sound) != file.stat().st_size:
            raw = file.read_bytes()
            write_whole(file, b"".join(raw[at:at + length] + b"\n" for at, length in sound))
        return done


def _entry(line: bytes) -> tuple[int, Columns] | None:
    try:
        body = json.loads(line)
        k, columns = body["chunk"], body["columns"]
        return (int(k), columns) if json_hash(columns) == body["check"] else None
    except (ValueError, KeyError, TypeError):
        return None


def _difference(old: Any, new: dict[str, Any], differs: list[str]) -> str:
    if "format" in differs or not isinstance(old, dict):
        return "another format"
    if "grid" in differs and isinstance(old.get("grid"), dict):
        names = {*old["grid"], *new["grid"]}
        changed = sorted(n for n in names if old["grid"].get(n) != new["grid"].get(n))
        return f"the grid of {', '.join(changed)} differs"
    if "chunk" in differs:
        return f"chunk was {old.get('chunk')}, now {new['chunk']}"
    if "grid_signature" in differs:
        return "the order of the grid differs"
    return "the equations, parameters or versions differ"
