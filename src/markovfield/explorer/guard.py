"""Who may ask: the right host (no DNS rebinding), the right token, the right origin; and what browsers may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from typing import Any

__all__ = ["Guard"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),  # the address holds the token
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """Lets pass what comes by the right host with the token as the first part of the path, and takes that part off.

    A token in the path goes along with every relative address of the page, scripts and websockets included; unlike a
    cookie it is not sent to other servers of this machine, and no other page can make a browser send it.
    """

    def __init__(self, application: Application, token: str, port: int) -> None:
        self._application, self._token = application, token.encode()
        self._hosts = {f"{host}:{port}".encode() for host in ("127.0.0.1", "localhost")}
        self._origins = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._application(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if refusal is None and scope["path"].count("/") == 1:
            # The address without its last stroke: what is relative would lack the token.
            where = b"/" + self._token + b"/"
            headers = [(b"location", where), (b"content-length", b"0")]
            await _with_headers(send)({"type": "http.response.start", "status": 307, "headers": headers})
            await send({"type": "http.response.body", "body": b""})
        elif refusal is None:
            path = "/" + scope["path"].split("/", 2)[2]
            scope = {**scope, "path": path, "raw_path": path.encode(), "root_path": ""}
            await self._application(scope, receive, _with_headers(send))
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refusal})
        else:
            send = _with_headers(send)
            body = refusal.encode()
            headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": body})

    def _refusal(self, scope: Scope) -> str | None:
        """Why a request is refused, or None."""
        headers = scope["headers"]
        hosts = [value.lower() for name, value in headers if name == b"host"]
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return "this server answers to 127.0.0.1 and localhost only"
        origins = [value.lower() for name, value in headers if name == b"origin"]
        if any(origin not in self._origins for origin in origins):
            return "this server answers its own page only"
        parts = scope["path"].split("/", 2)
        least = 2 if scope["type"] == "http" else 3
        if len(parts) < least or not compare_digest(parts[1].encode("utf-8", "replace"), self._token):
            return "the address lacks the token: open the address that was printed when the explorer started"
        return None


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *HEADERS]}
        await send(message)

    return sending
