"""A model as a web service: rows as JSON in, decisions out. A start, to copy and change.

    pip install damvi fastapi uvicorn
    DAMVI_MODEL=model.damvi uvicorn service:app --limit-concurrency 100

POST /predict takes a row, {"amount": 12.5, ...}, or a list of rows. GET /health and GET
/metrics (for Prometheus) say how it is. A new model file is loaded beside the old one, and
takes over with the next request; save it under the same name, which damvi does in one step.
"""

import asyncio
import json
import os
import time
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

import damvi

PATH = Path(os.environ.get("DAMVI_MODEL", "model.damvi"))
MOST_BYTES, MOST_ROWS, SECONDS_TO_SEND = 1 << 20, 1000, 5.0
served, counted = {}, Counter()


def load_model():
    told = PATH.stat()  # before it is read: what is saved meanwhile is loaded next time
    model = damvi.load(PATH)
    model.predict_row(dict.fromkeys(c.name for c in model.schema.used))  # the first is slow
    served.update(model=model, stamp=(told.st_mtime_ns, told.st_ino, told.st_size))


async def watch():
    while True:
        await asyncio.sleep(0.5)
        try:
            told = PATH.stat()
            if served["stamp"] != (told.st_mtime_ns, told.st_ino, told.st_size):
                await run_in_threadpool(load_model)
                counted["reloads"] += 1
        except Exception:  # a broken file: the old model goes on
            counted["failed_reloads"] += 1


@asynccontextmanager
async def lifespan(app):
    load_model()
    task = asyncio.create_task(watch())
    yield
    task.cancel()


app = FastAPI(lifespan=lifespan)


async def read_rows(request):
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS_TO_SEND):
            async for piece in request.stream():
                body += piece
                if len(body) > MOST_BYTES:
                    raise HTTPException(413, f"more than {MOST_BYTES:,} bytes")
        rows = json.loads(body)
    except TimeoutError:
        raise HTTPException(408, f"not sent within {SECONDS_TO_SEND:g} seconds") from None
    except ClientDisconnect:
        raise HTTPException(400, "gone in the middle") from None
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"no JSON: {error}") from None
    one, rows = isinstance(rows, dict), [rows] if isinstance(rows, dict) else rows
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise HTTPException(422, "give a row, or a list of rows, each an object")
    if len(rows) > MOST_ROWS:
        raise HTTPException(413, f"{len(rows):,} rows; give {MOST_ROWS:,} at a time")
    return rows, one


def judge(model, rows):
    told = []
    for number, row in enumerate(rows, 1):
        try:
            told.append(model.predict_row(row))
        except (ValueError, TypeError) as error:
            raise HTTPException(422, f"row {number}: {error}") from None
    return told


@app.post("/predict")
async def predict(request: Request):
    start, status = time.perf_counter(), 500
    try:
        rows, one = await read_rows(request)
        told = await run_in_threadpool(judge, served["model"], rows)
        counted["rows"] += len(told)
        status = 200
        return told[0] if one else told
    except HTTPException as error:
        status = error.status_code
        raise
    finally:
        counted[f'requests{{status="{status}"}}'] += 1
        counted["seconds"] += time.perf_counter() - start


@app.get("/health")
def health():
    target = served["model"].target
    return {"status": "ok", "target": target.name, "stamp": str(served["stamp"])}


@app.get("/metrics")
def metrics():
    lines = (f"damvi_{name} {value}\n" for name, value in sorted(counted.items()))
    return Response("".join(lines), media_type="text/plain")
