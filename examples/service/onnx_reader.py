"""Raw rows to decisions by an ONNX graph of damvi, with numpy and onnxruntime alone.

    damvi export model.damvi --to onnx      # writes model.onnx and model.onnx.json
    predict = Reader("model.onnx")
    predict([{"amount": 12.5, "shop": "north", "opened": "2024-05-06"}])

A copy for your service: it follows model.onnx.json, which says how each input is made. What
it cannot read for certain it refuses with a ValueError; it never guesses.
"""

import base64
import itertools
import json
import math
import re
from datetime import UTC, datetime
from hashlib import blake2b, sha256

import numpy as np
import onnxruntime

ISO = re.compile(
    r"\d{4}-\d\d-\d\d([T ](?!24)\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
PACKED = {"hashes": "<u8", "counts": "<u4", "weights": "<f4", "directions": "<f4"}


class Reader:
    def __init__(self, path):
        self.session = onnxruntime.InferenceSession(
            path, providers=["CPUExecutionProvider"]
        )
        with open(f"{path}.json", encoding="utf-8") as file:
            self.spec = json.load(file)
        if self.spec["format"] != "damvi feeder 1":
            raise ValueError(f"{path}.json is of another format: {self.spec['format']}")
        with open(path, "rb") as file:
            if sha256(file.read()).hexdigest() != self.spec["graph"]:
                raise ValueError(f"{path}.json is of another graph; export both again")
        self.missing = set(self.spec["missing"])
        self.arrays = {
            column["name"]: {
                name: np.frombuffer(base64.b64decode(column[name]), kind)
                for name, kind in PACKED.items()
                if name in column
            }
            for column in self.spec["columns"]
        }

    def __call__(self, rows):
        """What ``Model.predict_row`` says of each row."""
        outputs = self.session.run(["label", "probability", "vote"], self.inputs(rows))
        labels, chances, votes = (output.tolist() for output in outputs)
        decisions, made = self.spec["decisions"], []
        for label, chance, vote in zip(labels, chances, votes, strict=True):
            if len(decisions) == 2:
                told = {"score": vote, "probability": chance[1]}
            else:
                shares = {"probability": chance, "score": vote}
                told = {
                    f"{k} {one}": v[c]
                    for k, v in shares.items()
                    for c, one in enumerate(decisions)
                }
            made.append(told | {"decision": decisions[label]})
        return made

    def inputs(self, rows):
        """The tensors that the graph takes."""
        cells = {tensor.name: [] for tensor in self.session.get_inputs()}
        for row in rows:
            dates = {}
            for column in self.spec["columns"]:
                if column["kind"] == "date":
                    dates[column["name"]] = self.date(value_of(row, column), column)
            for column in self.spec["columns"]:
                read = getattr(self, column["kind"] + "_cells")
                known = dates if column["kind"] == "date" else value_of(row, column)
                for name, cell in read(known, column).items():
                    cells[name].append([cell])
        texts = {c["input"] for c in self.spec["columns"] if c["kind"] == "category"}
        types = {name: object if name in texts else np.float64 for name in cells}
        return {
            name: np.array(own, dtype=types[name]).reshape(-1, 1)
            for name, own in cells.items()
        }

    # Numbers, as they are or as people write them.

    def number(self, value, column):
        if isinstance(value, str):
            text = value.strip()
            if text.lower() in self.missing:
                return math.nan
            group, point = column.get("group", ""), column.get("decimal", ".")
            for unit in sorted(column.get("units", ()), key=len, reverse=True):
                if text.lower().endswith(unit.lower()):
                    text = text[: -len(unit)].rstrip()
                    break
            thousands = rf"|[1-9]\d{{0,2}}([{group}]\d{{3}})+" if group else ""
            number = rf"-?(\d+{thousands})([{point}]\d+)?([eE]-?\d{{1,2}})?"
            if not re.fullmatch(number, text, re.ASCII):
                raise refused(column, value)
            value = (text.replace(group, "") if group else text).replace(point, ".")
        try:
            number = math.nan if value is None else float(value)
        except OverflowError:  # a whole number of hundreds of digits
            raise refused(column, value) from None
        return number if math.isfinite(number) else math.nan

    def number_cells(self, value, column):
        return {column["input"]: self.number(value, column)}

    # Categories: by name, or very many by the hash of their name.

    def category_cells(self, value, column):
        text = label(value)
        known = text in ("", *column["categories"])
        return {column["input"]: text if known else column["other"]}

    def levels_cells(self, value, column):
        text, arrays = label(value), self.arrays[column["name"]]
        if text == "":
            code = count = math.nan
        else:
            digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            found = np.flatnonzero(arrays["hashes"] == int.from_bytes(digest, "little"))
            code = float(found[0] + 1) if len(found) else 0.0
            count = math.log(arrays["counts"][found[0]]) if len(found) else 0.0
        return {column["input"]: code} | dict.fromkeys(column["frequency"], count)

    # Dates: days since 1970 and seconds of the day.

    def date(self, value, column):
        form = column["form"]
        if form in ("seconds", "milliseconds", "%Y%m%d"):
            return from_number(self.number(value, column), form)
        if value is None or value != value:
            return None
        text = value.strip() if isinstance(value, str) else ""
        if text.lower() in self.missing and isinstance(value, str):
            return None
        try:
            iso = ISO.fullmatch(text)
            if not iso and (form == "ISO8601" or not text.isascii()):
                raise ValueError
            date = datetime.fromisoformat(text) if iso else datetime.strptime(text, form)
        except ValueError:
            raise refused(column, value) from None
        date = date.astimezone(UTC).replace(tzinfo=None) if date.tzinfo else date
        since = date - datetime(1970, 1, 1)
        return since.days, since.seconds + since.microseconds / 1e6

    def date_cells(self, dates, column):
        own, cells = dates[column["name"]], {}
        for part in column["parts"]:
            other = dates[part["since"]] if "since" in part else own
            number = math.nan
            if own is not None and other is not None:
                number = part_of(own, other, part.get("part"))
            cells[part["input"]] = number
        return cells

    # Free text: hashed pieces of words and words, along a few directions.

    def text_cells(self, value, column):
        if value is None or value != value:
            return dict.fromkeys(column["inputs"], math.nan)
        arrays, n = self.arrays[column["name"]], column["buckets"]
        text = str(value)[: column["longest"]].encode("utf-8", "replace").decode().lower()
        words, pieces = re.findall(r"\b\w+\b", text), []
        for word in re.sub(r"\s\s+", " ", text).split():
            padded = f" {word} "
            for size in range(column["letters"][0], column["letters"][1] + 1):
                pieces += [
                    padded[k : k + size] for k in range(max(1, len(padded) - size + 1))
                ]
                if len(padded) <= size:
                    break
        pairs = [" ".join(pair) for pair in itertools.pairwise(words)]
        buckets = [murmur(piece) % n for piece in pieces]
        buckets += [n + murmur(word) % n for word in words + pairs]
        counts = np.bincount(np.array(buckets, np.intp), minlength=2 * n)
        some = np.flatnonzero(counts)
        weighted = (1 + np.log(counts[some])) * arrays["weights"][some]
        length = math.sqrt((weighted**2).sum()) or 1.0
        directions = arrays["directions"].reshape(2 * n, -1)[some].astype(np.float64)
        return dict(zip(column["inputs"], (weighted / length) @ directions, strict=True))


def value_of(row, column):
    if column["name"] not in row:
        raise ValueError(f"column {column['name']!r} is missing")
    value = row[column["name"]]
    if value is not None and not isinstance(value, str | int | float):
        raise refused(column, value)
    return value


def refused(column, value):
    return ValueError(f"column {column['name']!r}: {value!r} cannot be read")


def label(value):
    """A category as a text: 1, 1.0 and "1" are the same; "" is missing."""
    if value is None or value != value:
        return ""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value)


def from_number(number, form):
    if form == "%Y%m%d":
        digits = str(int(number)) if 1e7 <= number < 1e8 else ""
        try:
            return (datetime.strptime(digits, form) - datetime(1970, 1, 1)).days, 0.0
        except ValueError:
            return None
    seconds = number / (1 if form == "seconds" else 1000)
    if not abs(seconds) < 1e11:
        return None
    return int(seconds // 86400), seconds % 86400


def part_of(own, other, part):
    (day, seconds), date = own, datetime.fromordinal(max(1, own[0] + 719163))
    if part is None:
        return (86400 * (day - other[0]) + seconds - other[1]) / 86400
    known = {"day": day, "hour": seconds / 3600, "month": date.month}
    return known.get(part, date.day if part == "day of month" else date.weekday())


def murmur(text):
    """MurmurHash3, 32 bits, of the seed 0; its absolute value as a signed number."""
    data, mask = text.encode("utf-8"), 0xFFFFFFFF
    h, tail = 0, len(data) & ~3
    blocks = [int.from_bytes(data[i : i + 4], "little") for i in range(0, tail, 4)]
    for place, k in enumerate([*blocks, int.from_bytes(data[tail:], "little")]):
        k = (k * 0xCC9E2D51) & mask
        k = ((k << 15) | (k >> 17)) & mask
        h ^= (k * 0x1B873593) & mask
        if place < len(blocks):
            h = ((h << 13) | (h >> 19)) & mask
            h = (h * 5 + 0xE6546B64) & mask
    h ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        h = ((h ^ (h >> shift)) * factor) & mask
    return abs(h - 2**32 if h >= 2**31 else h)
