"""Mutated model files: refused with our own error, or loaded and as good as any model.

Good is: probabilities that are finite, between 0 and 1 and add up to 1, the same when asked
again, for the rows in another order, and with other bytes in memory that nobody owns.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import bases, mutation
from .mutation import one_of
from .runner import Finding, perturb

HEAD = re.compile(rb"(damvi model [0-9]+\n)sha256 [0-9a-f]{64}\n")
MANIFEST = "model.json"


@dataclass(frozen=True)
class Case:
    """A file, the base that it was made from, and how."""

    base: str
    how: tuple[str, ...]
    content: bytes
    must_be_refused: bool = False


def seal(first: bytes, payload: bytes) -> bytes:
    """A file with a digest that fits, as any attacker can make."""
    digest = hashlib.sha256(payload).hexdigest()
    return first + f"sha256 {digest}\n".encode() + payload


class Models:
    """The kind ``models``.

    Parameters
    ----------
    folder : Path
        With the sound files.
    """

    name = "models"
    per_child = 20

    def __init__(self, folder: Path) -> None:
        self.files = {p.stem: p.read_bytes() for p in sorted(folder.glob("*.damvi"))}
        self.fresh = {name: bases.fresh_rows(name) for name in self.files}
        self.opened: dict[str, tuple[bytes, Any, dict[str, bytes]]] = {}
        for name, content in self.files.items():
            head = HEAD.match(content)
            assert head is not None
            members = mutation.members_of(content[head.end() :])
            self.opened[name] = head[1], json.loads(members.pop(MANIFEST)), members
        self.manifests = [manifest for _, manifest, _ in self.opened.values()]
        self.scratch = Path(tempfile.mkdtemp(prefix="damvi-fuzz-"))

    def warm(self) -> None:
        """Load and ask what starts no threads, so that children find it compiled."""
        import catboost  # noqa: F401

        import damvi.cli  # noqa: F401

        for name, content in self.files.items():
            if "catboost" not in json.dumps(self.opened[name][1]):
                assert self.check(Case(name, (), content)) == "predicts", name

    # Cases.

    def make(self, rng: np.random.Generator) -> Case:
        name = one_of(rng, list(self.files))
        first, manifest, members = self.opened[name]
        how = rng.random()
        if how < 0.05:
            changed = mutation.mutate_bytes(rng, self.files[name])
            same = changed == self.files[name]
            return Case(name, ("bytes, digest as it was",), changed, not same)
        if how < 0.10:
            whole = {MANIFEST: mutation.json_bytes(manifest), **members}
            payload = mutation.odd_zip(rng, whole)
            return Case(name, ("odd archive",), seal(first, payload))
        text = None
        done = []
        for _ in range(int(one_of(rng, [1, 1, 1, 2, 3]))):
            change, manifest, members, text = self._change(rng, name, manifest, members)
            done.append(change)
        written = text if text is not None else mutation.json_bytes(manifest)
        payload = mutation.zip_of({MANIFEST: written, **members})
        return Case(name, tuple(done), seal(first, payload))

    def _change(
        self, rng: np.random.Generator, name: str, manifest: Any, members: dict[str, bytes]
    ) -> tuple[str, Any, dict[str, bytes], bytes | None]:
        """One change: its name, and all parts of the file."""
        blobs = [one for one in members if not one.endswith(".npy")]
        arrays = [one for one in members if one.endswith(".npy")]
        how = rng.random()
        if blobs and how < 0.3:
            one = one_of(rng, blobs)
            return (
                f"blob {one}",
                manifest,
                {**members, one: self._blob(rng, one, members)},
                None,
            )
        if arrays and how < 0.52:
            one = one_of(rng, arrays)
            changed = mutation.mutate_npy(rng, members[one])
            return f"array {one}", manifest, {**members, one: changed}, None
        if arrays and how < 0.58:
            return "lengths", manifest, mutation.shorten_all(rng, members), None
        if how < 0.64 and members:
            return "splice", manifest, self._splice(rng, members), None
        if how < 0.68:
            text = mutation.mutate_json_text(rng, mutation.json_bytes(manifest))
            return "JSON text", manifest, members, text
        changed = mutation.mutate_json(rng, manifest, self.manifests, 1)
        return "JSON", changed, members, None

    def _blob(
        self, rng: np.random.Generator, name: str, members: dict[str, bytes]
    ) -> bytes:
        content = members[name]
        if rng.random() < 0.04:
            return mutation.mutate_bytes(rng, content)
        if name.endswith(".txt"):
            return mutation.mutate_lightgbm(rng, content)
        if name.endswith(".skops"):
            return self._skops(rng, content)
        try:
            value = json.loads(content)
        except ValueError:
            return mutation.mutate_bytes(rng, content)
        if rng.random() < 0.08:
            return mutation.mutate_json_text(rng, content)
        return mutation.json_bytes(mutation.mutate_json(rng, value, [], 1))

    def _skops(self, rng: np.random.Generator, content: bytes) -> bytes:
        try:
            inner = mutation.members_of(content)
            schema = json.loads(inner["schema.json"])
        except Exception:  # an earlier change has broken it
            return mutation.mutate_bytes(rng, content)
        arrays = [one for one in inner if one.endswith(".npy")]
        if arrays and rng.random() < 0.4:
            one = one_of(rng, arrays)
            inner[one] = mutation.mutate_npy(rng, inner[one])
        elif rng.random() < 0.1:
            return mutation.odd_zip(rng, inner)
        else:
            donors = [
                json.loads(mutation.members_of(blob)["schema.json"])
                for _, _, members in list(self.opened.values())
                for one, blob in members.items()
                if one.endswith(".skops")
            ]
            changed = mutation.mutate_json(rng, schema, donors, 1)
            inner["schema.json"] = mutation.json_bytes(changed)
        return mutation.zip_of(inner)

    def _splice(
        self, rng: np.random.Generator, members: dict[str, bytes]
    ) -> dict[str, bytes]:
        """A member of another file, or of another place in this one."""
        here = one_of(rng, list(members))
        suffix = here.rpartition(".")[2]
        _, _, theirs = self.opened[one_of(rng, list(self.opened))]
        known = [blob for one, blob in theirs.items() if one.endswith(suffix)]
        known += [blob for one, blob in members.items() if one.endswith(suffix)]
        return {**members, here: one_of(rng, known)}

    # Outcomes.

    def check(self, case: Case) -> str:
        from damvi.evaluation import class_names
        from damvi.io import ModelFileError, ModelParts, summarize
        from damvi.io.files import _load
        from damvi.model.evaluation import evaluate
        from damvi.model.prediction import find_drift

        path = self.scratch / f"{os.getpid()}.damvi"
        path.write_bytes(case.content)
        try:
            try:
                model, _ = _load(path, ())
            except ModelFileError as error:
                return _refused(error)
            if case.must_be_refused:
                raise Finding("silent", "damaged, its digest not put right, and yet loaded")
            fresh = self.fresh[case.base]
            try:
                if isinstance(model, ModelParts):
                    summarize(path)
                    if model.profile is not None:
                        find_drift(model, fresh).page()
                    names = class_names(model.target)
                    truth = [names[row % len(names)] for row in range(len(fresh))]
                    evaluate(model, fresh.assign(**{model.target.name: truth})).as_dict()
                    fresh = model.schema.encode(fresh)
                    model = model.classifier
                answers = _ask(model, fresh)
            except ValueError as error:
                return _refused(error, "refused by predict")
            except Exception as error:
                if str(error).startswith("voter '") and "failed" in str(error):
                    return _refused(error, "refused by predict, which names the voter")
                raise
        finally:
            path.unlink(missing_ok=True)
        self._same_again(model, fresh, answers)
        return "predicts"

    def _same_again(self, model: Any, fresh: Any, answers: list[Any]) -> None:
        perturb(0xA5)
        again = _ask(model, fresh)
        order = np.arange(len(fresh))[::-1]
        turned = fresh.iloc[order] if hasattr(fresh, "iloc") else fresh[order]
        back = [one[order] for one in _ask(copy.copy(model), turned)]
        perturb(0)
        for one, other in zip(answers, again, strict=True):
            if not np.array_equal(one, other):
                raise Finding("impure", "another answer when asked again")
        if not np.allclose(answers[0], back[0], rtol=0, atol=1e-6):
            raise Finding("impure", "another answer for the rows in another order")

    def keep(self, case: Case, folder: Path) -> None:
        (folder / "hostile.damvi").write_bytes(case.content)
        (folder / "base.txt").write_text(f"{case.base}\n" + "\n".join(case.how) + "\n")

    def kept(self, folder: Path) -> Case:
        base, *how = (folder / "base.txt").read_text().splitlines()
        content = (folder / "hostile.damvi").read_bytes()
        return Case(base, tuple(how), content)


def _refused(error: Exception, outcome: str = "refused") -> str:
    if "MemoryError" in str(error):
        raise Finding("memory", f"asked for more than there is: {error}")
    return outcome


def _ask(model: Any, fresh: Any) -> list[Any]:
    """Vote, probabilities and decisions, if they are what any model gives."""
    vote, chances, decided = (
        model.vote(fresh),
        model.predict_proba(fresh),
        model.predict(fresh),
    )
    n, n_classes = len(fresh), len(model.classes_)
    if chances.shape != (n, n_classes) or decided.shape != (n,):
        raise Finding("wrong", f"probabilities of shape {chances.shape}")
    if vote.shape != ((n,) if n_classes == 2 else (n, n_classes)):
        raise Finding("wrong", f"votes of shape {vote.shape}")
    low = -1 if n_classes == 2 else 0
    if not (np.isfinite(vote) & (vote >= low) & (vote <= 1)).all():
        raise Finding("wrong", f"votes such as {vote.ravel()[:5]}")
    if not (np.isfinite(chances) & (chances >= 0) & (chances <= 1)).all():
        raise Finding("wrong", f"probabilities such as {chances.ravel()[:5]}")
    if not np.allclose(chances.sum(axis=1), 1, atol=1e-6):
        raise Finding("wrong", f"probabilities that add up to {chances.sum(axis=1)[:5]}")
    if not np.isin(decided, model.classes_).all():
        raise Finding("wrong", f"decisions such as {decided[:5]}")
    return [vote, chances, decided]
