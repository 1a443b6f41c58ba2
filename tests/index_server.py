"""A stand-in package index on this machine: pages, metadata, wheels that can be read in parts; slow, broken or hostile on demand."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SIMPLE_JSON = "application/vnd.pypi.simple.v1+json"


class Index:
    """What the index holds, how it behaves, and what it was asked."""

    def __init__(self) -> None:
        self.projects: dict[str, list[dict[str, Any]]] = {}
        self.bodies: dict[str, bytes] = {}
        self.json = True
        self.parts = True
        self.delay = 0.0
        self.drip = 0.0
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.sent: list[str] = []
        """The paths whose bodies were sent; what a client has already is answered without one."""
        self.address = ""
        self.redirects: dict[str, str] = {}
        self.login: str | None = None
        """The `name:password` that it asks for."""

    def add(
        self,
        file: str,
        requires: tuple[str, ...] = (),
        *,
        python: str = ">=3.10",
        beside: bool = True,
        size: int | None = 1_000_000,
        day: str | None = "2027-01-14",
        yanked: bool = False,
        padding: int = 0,
    ) -> None:
        """Add a wheel that can be installed, with its metadata in a file beside it or only inside."""
        name, version, _ = file.split("-", 2)
        project = name.replace("_", "-").lower()
        text = f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\nRequires-Python: {python}\n"
        text += "".join(f"Requires-Dist: {one}\n" for one in requires) + "\nWords.\nRequires-Dist: not-a-header\n"
        entry: dict[str, Any] = {"filename": file, "url": f"../../files/{file}", "requires-python": python, "yanked": yanked}
        if size is not None:
            entry["size"] = size
        if day is not None:
            entry["upload-time"] = f"{day}T10:00:00Z"
        if beside:
            entry["core-metadata"] = True
            self.bodies[f"/files/{file}.metadata"] = text.encode()
        body = _packed(file, text, padding)
        self.bodies[f"/files/{file}"] = body
        entry["hashes"] = {"sha256": hashlib.sha256(body).hexdigest()}
        self.projects.setdefault(project, []).append(entry)

    def replace(self, file: str, *, padding: int) -> None:
        """Serve other bytes under the name of a wheel, with the new hash on the page, as a careless or a hostile index does."""
        entry = next(one for held in self.projects.values() for one in held if one["filename"] == file)
        body = self.bodies[f"/files/{file}"] = self.made(file, padding)
        entry["hashes"] = {"sha256": hashlib.sha256(body).hexdigest()}

    def made(self, file: str, padding: int = 0) -> bytes:
        """Return a wheel of that name without requirements."""
        name, version, _ = file.split("-", 2)
        return _packed(file, f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n", padding)

    def page(self, project: str) -> tuple[str, bytes]:
        """Return a simple page in the form that this index speaks."""
        files = self.projects[project]
        if self.json:
            return SIMPLE_JSON, json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": files}).encode()
        links = []
        for one in files:
            beside = ' data-core-metadata="true"' if one.get("core-metadata") else ""
            gone = ' data-yanked=""' if one["yanked"] else ""
            link, python = f"{one['url']}#sha256={one['hashes']['sha256']}", html.escape(one["requires-python"])
            links.append(f'<a href="{link}" data-requires-python="{python}"{beside}{gone}>x</a>')
        return "text/html", f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>".encode()


def _packed(file: str, metadata: str, padding: int) -> bytes:
    """Return a wheel that can be installed."""
    name, version, tag = file.removesuffix(".whl").split("-", 2)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{name}-{version}.dist-info/METADATA", metadata)
        archive.writestr(f"{name}-{version}.dist-info/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{name}/weights", b"\0" * padding)
        held = (*archive.namelist(), f"{name}-{version}.dist-info/RECORD")
        archive.writestr(held[-1], "".join(f"{one},,\n" for one in held))
    return packed.getvalue()


@contextmanager
def serving(index: Index) -> Iterator[str]:
    """Serve the index and yield the address of its simple pages."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append((self.path, dict(self.headers.items())))
            time.sleep(index.delay)
            if index.login and self.headers.get("Authorization") != "Basic " + base64.b64encode(index.login.encode()).decode():
                self.send_error(401)
                return
            if self.path in index.redirects:
                self.send_response(302)
                self.send_header("Location", index.redirects[self.path])
                self.end_headers()
                return
            parts = self.path.strip("/").split("/")
            kind, body = "application/octet-stream", index.bodies.get(self.path)
            if parts[0] == "simple" and len(parts) == 2 and parts[1] in index.projects:
                kind, body = index.page(parts[1])
            if body is None:
                self.send_error(404)
                return
            self._send(kind, body)

        def _send(self, kind: str, body: bytes) -> None:
            tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
            if kind == "application/octet-stream" and self.headers.get("If-None-Match") == tag:
                self.send_response(304)
                self.send_header("ETag", tag)
                self.end_headers()
                return
            index.sent.append(self.path)
            span, status, total, start = self.headers.get("Range"), 200, len(body), 0
            if span and index.parts:
                first, _, last = span.removeprefix("bytes=").partition("-")
                start = int(first) if first else max(0, total - int(last))
                end = min(total, int(last) + 1) if first and last else total
                body, status = body[start:end], 206
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Last-Modified", "Thu, 14 Jan 2027 10:00:00 GMT")
            self.send_header("ETag", tag)
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{start + len(body) - 1}/{total}")
            self.end_headers()
            try:
                for at in range(0, len(body), 64 if index.drip else len(body) or 1):
                    self.wfile.write(body[at : at + (64 if index.drip else len(body))])
                    time.sleep(index.drip)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    index.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield f"{index.address}/simple"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def newer_world() -> Index:
    """Return an index some months later than the tables: a newer PyTorch, TensorFlow and JAX with their partners."""
    index = Index()
    linux = ("manylinux_2_28_x86_64", "manylinux_2_28_aarch64")
    needs = (
        'cuda-toolkit[cudart]==13.2.2; platform_system == "Linux"',
        'nvidia-cudnn-cu13==9.30.0.1; platform_system == "Linux"',
        'nvidia-nccl-cu13==2.31.1; platform_system == "Linux"',
        "numpy>=1.26; python_version < '3'",
        'optree>=0.13; extra == "optree"',
    )
    for line in ("312", "313", "314", "315"):
        for platform in linux:
            index.add(f"torch-2.16.0-cp{line}-cp{line}-{platform}.whl", needs, size=540_000_000)
    index.add("torch-2.16.0-cp315-cp315t-manylinux_2_28_x86_64.whl", needs)
    index.add("torch-2.16.0-cp312-cp312-win_amd64.whl", needs, size=120_000_000)
    index.add("torch-2.17.0rc1-cp312-cp312-manylinux_2_28_x86_64.whl", needs)
    index.add("torch-2.99.0-cp312-cp312-manylinux_2_28_x86_64.whl", needs, yanked=True)
    index.add("torchvision-0.30.0-cp312-cp312-manylinux_2_28_x86_64.whl", ("torch==2.16.0",))
    index.add("torchvision-0.29.9-cp312-cp312-manylinux_2_28_x86_64.whl", ("torch==2.15.0",))
    index.add("torchaudio-2.12.0-py3-none-manylinux_2_28_x86_64.whl", ("torch (>=2.11)",))
    cuda = ('nvidia-cuda-runtime-cu13<14.0,>=13.0; extra == "and-cuda"', 'nvidia-cudnn-cu13<10,>=9.20; extra == "and-cuda"')
    for line in ("312", "313"):
        index.add(f"tensorflow-2.22.0-cp{line}-cp{line}-manylinux_2_27_x86_64.whl", (*cuda, "numpy>=2.1"), beside=False, padding=5_000_000)
    index.add(
        "jax-0.13.0-py3-none-any.whl",
        (
            "jaxlib<=0.13.0,>=0.13.0",
            "numpy>=2.2",
            'jax-cuda13-plugin[with-cuda]<=0.13.0,>=0.13.0; extra == "cuda13"',
            'jax-cuda12-plugin[with-cuda]<=0.13.0,>=0.13.0; extra == "cuda12"',
        ),
        python=">=3.12",
    )
    index.add("jaxlib-0.13.0-cp313-cp313-manylinux_2_27_x86_64.whl", size=90_000_000)
    index.add("jax_cuda13_plugin-0.13.0-cp313-cp313-manylinux_2_27_x86_64.whl")
    return index
