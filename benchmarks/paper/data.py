"""The datasets of the experiments, with an imitation of the paper's proprietary one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from sklearn.utils import Bunch

from damvi import datasets

from .published import PAPER_DATASETS

ROWS, POSITIVES = 816_099, 163
FEATURES = [
    "load",
    "speed",
    "engine_speed",
    "fuel_rate",
    "boost_pressure",
    "coolant_temperature",
    "oil_temperature",
    "exhaust_temperature",
    "oil_pressure",
    "vibration",
    "battery_voltage",
    "ambient_temperature",
    "gear",
    "odometer",
    "engine_hours",
    "warnings",
    "noise",
]
# What a failure does to a sensor, in standard deviations of a healthy truck. Heavy load
# moves the first four as well, but the oil pressure holds: only the joint pattern tells.
FAILURE = {
    "coolant_temperature": 3.0,
    "oil_temperature": 2.5,
    "exhaust_temperature": 2.0,
    "vibration": 2.5,
    "oil_pressure": -3.0,
    "battery_voltage": -1.0,
}
HEAVY_LOAD = {
    "load": 2.5,
    "coolant_temperature": 2.5,
    "oil_temperature": 2.0,
    "exhaust_temperature": 2.5,
    "vibration": 1.5,
    "boost_pressure": 2.0,
}


def load(name: str, folder: Path | None = None) -> Bunch:
    """A dataset by name, as :func:`damvi.datasets.load` does, or the imitation of PCT."""
    if name == "pct_imitation":
        return imitate_pct()
    return datasets.load(name, data_dir=folder)


def paper_names(folder: Path | None, say: Callable[[str], None]) -> list[str]:
    """The paper's datasets that can be had; what has to be placed by hand is said.

    A part of one, in the folder, stands for the whole if this is not at hand.
    """
    found = {d["name"]: d["where"] for d in datasets.available(folder)}
    chosen = []
    for name in PAPER_DATASETS:
        part = f"{name}_partial"
        if name == "pct":
            chosen.append("pct_imitation")
        elif found[name] in ("to fetch", "to place by hand") and part in found:
            chosen.append(part)
        elif found[name] == "to place by hand":
            say(f"Left out: {name}, which must be placed by hand; see docs/datasets.md")
        else:
            chosen.append(name)
    return chosen


def imitate_pct(n: int = ROWS, random_state: int = 0) -> Bunch:
    """Make a table of PCT's size and rarity: 816,099 rows, 17 columns, 163 positives.

    PCT, the paper's sixth dataset, is proprietary, so nothing measured here is a result on
    it. Rows are moments of trucks on the road, in order of time: correlated sensors that
    drift, counters, whole numbers, noise. Failures come in short episodes of nearly
    identical consecutive rows, so a random split of the rows puts the same episode on both
    sides. Healthy trucks under heavy load look much alike.

    Parameters
    ----------
    n : int
        Rows. The share of positives stays the same, with no fewer than 2.
    random_state : int
        Seed; the same one gives the same table.

    Returns
    -------
    dataset : Bunch
        ``data``, ``target``, ``feature_names``, ``name`` and ``groups``: the episode of
        each positive row and the truck of each other row, for splits that keep episodes
        whole.
    """
    if n < 100:
        raise ValueError(
            f"n={n} is too few rows for failures in episodes; take 100 or more"
        )
    rng = np.random.RandomState(random_state)
    truck = np.arange(n) // 4000
    data = _healthy(rng, truck)
    scale = data.std(axis=0)
    _add_heavy_load(rng, data, scale)
    starts, lengths = _episodes(rng, n)
    target = np.zeros(n, dtype=np.int8)
    # Trucks first, then episodes, all numbered apart.
    groups = truck.astype(np.int32)
    for k, (start, length) in enumerate(zip(starts, lengths, strict=True)):
        rows = slice(start, start + length)
        data[rows] = _failing(rng, data[start], scale, length)
        target[rows] = 1
        groups[rows] = truck[-1] + 1 + k
    return Bunch(
        data=data,
        target=target,
        feature_names=list(FEATURES),
        groups=groups,
        name="pct_imitation",
    )


def _healthy(rng: np.random.RandomState, truck: NDArray[np.int64]) -> NDArray[np.float64]:
    n, n_trucks = len(truck), int(truck[-1]) + 1

    def drift(memory: float) -> NDArray[np.float64]:
        """A stationary walk of variance one, that forgets after about 1/(1-memory) rows."""
        steps = rng.standard_normal(n)
        return lfilter([np.sqrt(1 - memory**2)], [1, -memory], steps)

    def own(spread: float) -> NDArray[np.float64]:
        """What is each truck's own."""
        return (spread * rng.standard_normal(n_trucks))[truck]

    def jitter(spread: float) -> NDArray[np.float64]:
        return spread * rng.standard_normal(n)

    load, road, weather = drift(0.98) + own(0.5), drift(0.95), drift(0.9995)
    heat = lfilter([0.03], [1, -0.97], load)
    age = np.abs(own(1.0))
    since = np.arange(n) - 4000 * truck
    columns = {
        "load": 50 + 15 * load + jitter(3),
        "speed": np.clip(65 + 15 * road - 5 * load + jitter(3), 0, 110),
        "engine_speed": np.rint(1400 + 180 * load - 60 * road + jitter(40)),
        "fuel_rate": np.clip(22 + 7 * load + 3 * road + jitter(1.5), 0, None),
        "boost_pressure": 1.6 + 0.4 * load + jitter(0.1),
        "coolant_temperature": 84 + 3 * heat + 0.8 * weather + own(1.0) + jitter(0.6),
        "oil_temperature": 95 + 4 * heat + weather + own(1.5) + jitter(0.8),
        "exhaust_temperature": 420 + 55 * load + 10 * heat + jitter(12),
        "oil_pressure": 4.2 + 0.25 * load - 0.2 * heat + own(0.15) + jitter(0.12),
        "vibration": np.exp(0.25 * road + 0.15 * age + jitter(0.2)),
        "battery_voltage": 27.6 + own(0.2) + 0.1 * drift(0.99) + jitter(0.08),
        "ambient_temperature": np.rint(2 * (12 + 8 * weather)) / 2,
        "gear": np.clip(np.rint(9 + 2.2 * road - 0.8 * load), 1, 12),
        "odometer": np.rint(2e5 * age + since * 0.9),
        "engine_hours": np.rint(10 * (3e3 * age + since / 60)) / 10,
        "warnings": rng.poisson(0.05 + 0.05 * age).astype(float),
        "noise": jitter(1),
    }
    data = np.empty((n, len(FEATURES)))
    for j, name in enumerate(FEATURES):
        data[:, j] = columns.pop(name)
    return data


def _add_heavy_load(
    rng: np.random.RandomState,
    data: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> None:
    """Make one row in 200 a healthy truck that pulls hard, in stretches of 20."""
    n_stretches = max(1, len(data) // 4000)
    starts = rng.randint(0, len(data) - 20, size=n_stretches)
    rows = (starts[:, None] + np.arange(20)).ravel()
    strength = np.repeat(rng.uniform(0.5, 1.5, size=n_stretches), 20)
    for name, shift in HEAVY_LOAD.items():
        j = FEATURES.index(name)
        data[rows, j] += shift * scale[j] * strength


def _episodes(
    rng: np.random.RandomState, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    positives = max(2, round(n * POSITIVES / ROWS))
    n_episodes = max(1, round(positives / 5))
    ends = np.sort(rng.choice(np.arange(1, positives), n_episodes - 1, replace=False))
    lengths = np.diff(np.concatenate([[0], ends, [positives]]))
    # One episode a slot of the time line, so that no two of them meet.
    slot = n // n_episodes
    room = np.maximum(slot - lengths, 1)
    return np.arange(n_episodes) * slot + (rng.rand(n_episodes) * room).astype(int), lengths


def _failing(
    rng: np.random.RandomState,
    row: NDArray[np.float64],
    scale: NDArray[np.float64],
    length: int,
) -> NDArray[np.float64]:
    """Return the rows of one episode: nearly the same row, shifted in several sensors."""
    strength = rng.uniform(0.6, 1.6)
    episode = np.repeat(row[None, :], length, axis=0)
    for name, shift in FAILURE.items():
        j = FEATURES.index(name)
        own = shift * strength * rng.uniform(0.7, 1.3)
        episode[:, j] += scale[j] * (own + 0.05 * rng.standard_normal(length))
    episode[:, FEATURES.index("warnings")] += rng.poisson(1.0)
    return episode
