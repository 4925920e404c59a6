"""Conversations over a websocket: a thread of ours at one end, a page in the browser at the other."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError
from contextlib import suppress
from threading import Condition, Thread
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from markovfield.explorer.core.page import Stream
from markovfield.explorer.core.subject import Subject
from markovfield.explorer.replies import explained, parsed, to_json

__all__ = ["SocketChannel", "converse"]

# A browser that takes nothing for so long is gone.
PATIENCE = 60.0


class SocketChannel:
    """The server's end of a conversation, for the thread that holds it."""

    def __init__(self, socket: WebSocket, loop: asyncio.AbstractEventLoop) -> None:
        self._socket, self._loop = socket, loop
        self._said: list[Any] = []
        self._told = Condition()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether the browser has gone or the server stops."""
        return self._closed

    def close(self) -> None:
        """End the conversation; whoever waits for words stops waiting."""
        with self._told:
            self._closed = True
            self._told.notify_all()

    def hear(self, message: Any) -> None:
        """Keep what the browser said."""
        with self._told:
            self._said = [message]
            self._told.notify_all()

    def send(self, message: Any) -> None:
        """Send bytes as they are, or what JSON can hold; waits while the browser is behind."""
        if self._closed:
            return
        binary = isinstance(message, bytes)
        told = self._socket.send_bytes(message) if binary else self._socket.send_text(to_json(message))
        sending = asyncio.run_coroutine_threadsafe(told, self._loop)
        try:
            sending.result(PATIENCE)
        except (TimeoutError, CancelledError, RuntimeError, WebSocketDisconnect):
            self.close()

    def latest(self, timeout: float | None = 0.0) -> Any:
        """The last thing that the browser said since the last call, or None; waits for one as long as told."""
        with self._told:
            if timeout != 0.0:
                self._told.wait_for(lambda: bool(self._said) or self._closed, timeout)
            return self._said.pop() if self._said else None


async def converse(stream: Stream, subject: Subject, socket: WebSocket) -> None:
    """Run a stream in a thread until it ends or the browser goes."""
    await socket.accept()
    loop = asyncio.get_running_loop()
    channel, ended = SocketChannel(socket, loop), asyncio.Event()

    def speak() -> None:
        try:
            stream(subject, channel)
        except Exception as error:
            channel.send({"error": explained(error)[0]})
        finally:
            with suppress(RuntimeError):  # the server has stopped meanwhile
                loop.call_soon_threadsafe(ended.set)

    async def listen() -> None:
        try:
            while True:
                channel.hear(parsed(await socket.receive_text()))
        except (WebSocketDisconnect, RuntimeError, KeyError, ValueError):
            channel.close()

    listening = asyncio.create_task(listen())
    try:
        # A thread of its own: those that answer calls are few, and many tabs would take them all.
        Thread(target=speak, name="markovfield-stream", daemon=True).start()
        await ended.wait()
    finally:
        channel.close()
        listening.cancel()
        if socket.client_state is WebSocketState.CONNECTED and socket.application_state is WebSocketState.CONNECTED:
            with suppress(RuntimeError):  # it was closed at the other end meanwhile
                await socket.close()
