"""The routes of the explorer: assets, what is explored, calls and streams of pages."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Event
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

import markovfield as mf
from markovfield.exceptions import ModelError
from markovfield.explorer.assets import asset_table
from markovfield.explorer.core.page import Channel, Page
from markovfield.explorer.core.stopping import STOP
from markovfield.explorer.core.subject import Subject
from markovfield.explorer.guard import Guard
from markovfield.explorer.pages import all_pages
from markovfield.explorer.replies import explained, parsed, to_json
from markovfield.explorer.streams import converse

__all__ = ["application"]

# Images may be painted on; models are never sent.
MOST_BYTES = 16 * 2**20
# From this machine to itself, a page's request takes a moment.
BODY_SECONDS = 30.0
# Calls at a time; each may use several cores, and a slow one must not hold up a click.
WORKERS = 8
# Seconds between looks at the file, and whether the browser that called is still there.
WATCH, LOOK = 0.5, 0.2


def application(subject: Subject, token: str, port: int) -> Guard:
    """The whole server, behind its guard."""
    routes = _Routes(subject, all_pages())
    inner = Starlette(
        routes=[
            Route("/", routes.asset, methods=["GET"]),
            Route("/static/{path:path}", routes.asset, methods=["GET"]),
            Route("/api/{page}/{call}", routes.call, methods=["POST"]),
            WebSocketRoute("/streams/{page}/{stream}", routes.stream),
            Route("/{path:path}", routes.nothing, methods=["GET", "POST"]),
        ]
    )
    return Guard(inner, token, port)


def _reply(value: Any, status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")


class _Routes:
    def __init__(self, subject: Subject, pages: list[Page]) -> None:
        self._subject = subject
        shell = Page("explorer", "", lambda _: True, {"subject": self._told, "reload": self._reload}, {"watch": _watch})
        self._offered = pages
        self._pages = {page.name: page for page in [shell, *pages]}
        self._assets = asset_table()
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="markovfield-call")

    async def asset(self, request: Request) -> Response:
        """A file of the fixed table."""
        path = request.path_params.get("path", "index.html")
        if path not in self._assets:
            return _reply({"error": "there is no such page"}, 404)
        content, kind = self._assets[path]
        return Response(content, media_type=kind)

    async def nothing(self, request: Request) -> Response:
        """Whatever else is asked for."""
        return _reply({"error": "there is no such page"}, 404)

    async def call(self, request: Request) -> Response:
        """A call of a page: its arguments are the body, its work is done in a thread."""
        names = request.path_params
        page = self._pages.get(names["page"])
        call = None if page is None else page.calls.get(names["call"])
        if call is None:
            return _reply({"error": f"there is no call {names['page']}/{names['call']}"}, 404)
        try:
            asked = parsed(await _body(request))
            stop, context = Event(), copy_context()
            context.run(STOP.set, stop)
            # In the thread as well: large answers take a while to write.
            work = asyncio.get_running_loop().run_in_executor(
                self._workers, context.run, lambda: None if stop.is_set() else _reply(call(self._subject, asked))
            )
            while not (await asyncio.wait({work}, timeout=LOOK))[0]:
                if await request.is_disconnected():
                    stop.set()
            return await work or Response(status_code=400)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except Exception as error:
            sentence, status = explained(error)
            return _reply({"error": sentence, "kind": type(error).__name__}, status)

    async def stream(self, socket: WebSocket) -> None:
        """A stream of a page."""
        names = socket.path_params
        page = self._pages.get(names["page"])
        stream = None if page is None else page.streams.get(names["stream"])
        if stream is None:
            await socket.close(1008)
        else:
            await converse(stream, self._subject, socket)

    def _told(self, subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
        """What is explored, and its pages."""
        return {
            "name": subject.name,
            "kind": type(subject.model).__name__,
            "file": subject.path is not None,
            "version": subject.version,
            "library": mf.__version__,
            "pages": [{"name": p.name, "title": p.title} for p in self._offered if p.offered(subject)],
        }

    def _reload(self, subject: Subject, asked: dict[str, Any]) -> dict[str, Any]:
        subject.reload()
        return self._told(subject, asked)


async def _body(request: Request) -> bytes:
    """The body, unless it is larger than anything a page sends, or takes longer than a page does."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > MOST_BYTES:
                    raise ModelError(f"a request may have {MOST_BYTES} bytes, this one has more")
                parts.append(part)
    except TimeoutError:
        raise ModelError(f"a request has to arrive within {BODY_SECONDS:g} s") from None
    return b"".join(parts)


def _watch(subject: Subject, channel: Channel) -> None:
    """Tell the version of the model whenever it changes, and read the file again when it is another one."""
    told = 0
    while not channel.closed:
        if subject.changed:
            try:
                subject.reload()
            except Exception as error:
                channel.send({"error": explained(error)[0]})
        if subject.version != told:
            told = subject.version
            channel.send({"version": told})
        channel.latest(WATCH)
