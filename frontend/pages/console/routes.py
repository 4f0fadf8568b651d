"""Answers `/` with the console, and `/console/…` with the files that it loads."""

import hashlib
from pathlib import Path
from typing import NamedTuple

from fastapi import Request
from fastapi.responses import Response

from frontend.pages.handlers import PageHandler, PageHandlers
from frontend.problems import refusal

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""What a browser allows the console: files and routes of this server, and no text that becomes a script."""
FOLDER = Path(__file__).with_name("files")
_INDEX = "index.html"
_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class _File(NamedTuple):
    """A file as it is sent. headers: its kind, its tag, and what browsers may do with it."""

    content: bytes
    headers: dict[str, str]

    def answer(self, request: Request) -> Response:
        """Return 200 with the content, or 304 if the browser has it already."""
        asked = request.headers.get("if-none-match", "")
        known = {each.strip().removeprefix("W/") for each in asked.split(",")}
        if known & {self.headers["etag"], "*"}:
            return Response(status_code=304, headers=self.headers)
        return Response(self.content, headers=self.headers)


def console() -> dict[str, PageHandler]:
    """Return the handlers of these routes, by name."""
    page = PageHandlers(include_in_schema=False)
    files = {path.name: _read(path) for path in FOLDER.iterdir() if path.suffix in _MEDIA_TYPES}

    @page()
    async def show_console(request: Request) -> Response:
        return files[_INDEX].answer(request)

    @page()
    async def console_file(file: str, request: Request) -> Response:
        if file not in files:
            raise refusal(404, f"the console has no file {file[:80]!r}")
        return files[file].answer(request)

    return page.by_name


def _read(path: Path) -> _File:
    content = path.read_bytes()
    headers = {
        "content-type": _MEDIA_TYPES[path.suffix],
        "content-security-policy": POLICY,
        # A browser asks each time whether its copy is still good, so files of two releases never meet.
        "cache-control": "no-cache",
        "etag": f'"{hashlib.sha256(content).hexdigest()[:32]}"',
    }
    return _File(content, headers)
