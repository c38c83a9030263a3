"""
Serve a model without damvi, with ONNX
======================================

The model goes to where the requests are, as an ONNX graph and a small file that says
how raw values become its inputs. The reader is a hundred lines of numpy that you may
copy.
"""

# %%
# Export
# ------

import sys
import tempfile
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import damvi
from damvi.io import export_onnx

runs = damvi.datasets.load("ai4i2020", as_frame=True).frame
model = damvi.fit(runs, "machine_failure", pool="trees", random_state=0)
folder = Path(tempfile.mkdtemp())
export_onnx(model, folder / "model.onnx")
for path in sorted(folder.iterdir()):
    print(path.name, f"{path.stat().st_size:,} bytes")

# %%
# Raw rows in, decisions out
# --------------------------
# :download:`onnx_reader.py <../../examples/service/onnx_reader.py>` needs only numpy and
# onnxruntime. To run this lesson outside a checkout, put it beside the script.

here = Path(__file__).parent if "__file__" in globals() else Path.cwd()
sys.path[:0] = [str(here), str(here / "service")]
from onnx_reader import Reader  # noqa: E402

reader = Reader(str(folder / "model.onnx"))
rows = runs.drop(columns="machine_failure").head(500).to_dict("records")
print(rows[0])
print(reader(rows[:1])[0])

# %%
# It gives the model's decisions:

told = [model.predict_row(row) for row in rows]
graph = reader(rows)
same = sum(a["decision"] == b["decision"] for a, b in zip(told, graph, strict=True))
print(f"{same} of {len(rows)} decisions are the same")

# %%
# How long a request takes
# ------------------------


def milliseconds(judge):
    spent = []
    for row in rows:
        start = time.perf_counter()
        judge(row)
        spent.append(1000 * (time.perf_counter() - start))
    return np.sort(spent)


fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ways = {"Model.predict_row": model.predict_row, "ONNX": lambda row: reader([row])}
for name, judge in ways.items():
    spent = milliseconds(judge)
    ax.plot(
        spent, np.linspace(0, 1, len(spent)), label=f"{name}, median {spent[250]:.2f} ms"
    )
ax.set(xscale="log", xlabel="milliseconds", ylabel="share of requests")
ax.legend()
plt.show()

# %%
# A whole service, with limits, health, metrics and reload, is in :download:`service.py
# <../../examples/service/service.py>`.
