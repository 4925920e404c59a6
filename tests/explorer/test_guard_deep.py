"""What else an explorer may be sent: other addresses, slow clients, requests that are nonsense."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import markovfield as mf
from markovfield.explorer import application
from markovfield.explorer.core.page import Page
from markovfield.explorer.core.stopping import nobody_waits
from tests.explorer.streaming import PATIENCE, ask, converse, eventually, patient

httpx = patient()

LISTENING = "0A"


@pytest.fixture
def running(explorer: Callable[..., Any]) -> Any:
    return explorer(mf.datasets.asia())


def raw(running: Any, request: str | bytes) -> bytes:
    """What comes back for bytes as they are."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as connection:
        connection.sendall(request if isinstance(request, bytes) else request.encode("latin-1"))
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells what is bound")
def test_nothing_but_loopback_is_bound(running: Any):
    bound = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            host, port = address.split(":")
            if int(port, 16) == running.port and state == LISTENING:
                bound.append((table, host))
    assert bound == [("tcp", "0100007F")]


@pytest.mark.parametrize(
    "path", ["", "static/explorer.js", "api/explorer/subject", "nothing", "static/../../etc/passwd"]
)
def test_every_reply_restricts_the_browser(running: Any, path: str):
    for reply in (httpx.get(running.url + path), httpx.get(f"http://127.0.0.1:{running.port}/{path}")):
        policy = reply.headers["content-security-policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'" and rules["script-src"] == "'self'" and rules["style-src"] == "'self'"
        assert rules["frame-ancestors"] == "'none'" and rules["base-uri"] == "'none'"
        assert "unsafe" not in policy and "http" not in policy and "*" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"])
def test_other_methods_do_nothing(running: Any, method: str):
    reply = httpx.request(method, running.url + "api/explorer/reload", headers={"origin": "http://evil.example"})
    assert reply.status_code == 403
    assert httpx.request(method, running.url + "api/explorer/reload").status_code in (404, 405)


@pytest.mark.parametrize(
    "origin", ["null", "http://127.0.0.1", "https://127.0.0.1:{port}", "http://localhost.evil:{port}"]
)
def test_origins_that_are_nearly_right_are_refused(running: Any, origin: str):
    origin = origin.format(port=running.port)
    reply = httpx.post(running.url + "api/explorer/subject", json={}, headers={"origin": origin})
    assert reply.status_code == 403
    client = pytest.importorskip("websockets.sync.client")
    address = running.url.replace("http", "ws", 1) + "streams/explorer/watch"
    with pytest.raises(Exception, match="403"), client.connect(address, origin=origin):
        pass


def test_hosts_of_rebound_names_are_refused(running: Any):
    token = urlsplit(running.url).path
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    upgrade += "Sec-WebSocket-Key: x3JJHMbDL1EzLkh9GBhXDw==\r\n"
    right = f"127.0.0.1:{running.port}"
    for hosts in (
        ["evil.example"],
        [f"evil.example:{running.port}"],
        [right, "evil.example"],
        [f"{right}@evil.example"],
    ):
        header = "".join(f"Host: {host}\r\n" for host in hosts)
        for path, more in (("", "Connection: close\r\n"), ("streams/explorer/watch", upgrade)):
            answer = raw(running, f"GET {token}{path} HTTP/1.1\r\n{header}{more}\r\n")
            assert answer.split(b"\r\n")[0].split()[1] in (b"403", b"400")
    # Without any Host, and by the absolute form of the address.
    assert raw(running, f"GET {token} HTTP/1.0\r\n\r\n").split()[1] in (b"403", b"400")
    answer = raw(running, f"GET http://evil.example{token} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    assert answer.split()[1] == b"403"


@pytest.mark.parametrize(
    "path",
    [
        "static/%252e%252e/guard.py",
        "static/..%5c..%5cexplorer.py",
        "static/pages/../../guard.py",
        "static/%2Fetc%2Fpasswd",
        "static/explorer.js%00.py",
        "static/explorer.js/",
        "static/file:///etc/passwd",
        "api/../static/explorer.js/../guard.py",
        "%2e%2e/%2e%2e/etc/passwd",
        "static/" + "a/" * 5000,
    ],
)
def test_no_encoding_reaches_the_file_system(running: Any, path: str):
    token = urlsplit(running.url).path
    answer = raw(running, f"GET {token}{path} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nConnection: close\r\n\r\n")
    assert answer.split()[1] in (b"404", b"403")
    assert b"import" not in answer and b"root:" not in answer


def test_tokens_are_long_and_new_each_time(explorer: Callable[..., Any]):
    tokens = {urlsplit(explorer(mf.datasets.sprinkler()).url).path.strip("/") for _ in range(3)}
    assert len(tokens) == 3 and min(map(len, tokens)) >= 32
    one = explorer(mf.datasets.sprinkler())
    token = urlsplit(one.url).path.strip("/")
    for wrong in (token[:-1], token + "x", token.swapcase(), token[:-1] + chr(ord(token[-1]) ^ 1)):
        assert httpx.get(f"http://127.0.0.1:{one.port}/{wrong}/").status_code == 403


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ('{"a": NaN}', "this is no JSON"),
        ('{"a": -Infinity}', "this is no JSON"),
        ('{"a": ' + "[" * 50 + "]" * 50 + "}", "nested 12 deep"),
        ('{"a":' * 500 + "1" + "}" * 500, "nested 12 deep"),
        ('{"a": ' + "9" * 5000 + "}", "this is no JSON"),
        ("", "this is no JSON"),
        ("null", "got NoneType"),
    ],
)
def test_strange_json_gives_a_sentence(running: Any, body: str, sentence: str):
    reply = httpx.post(running.url + "api/explorer/subject", content=body)
    assert reply.status_code == 400 and sentence in reply.json()["error"]


def test_a_websocket_that_talks_nonsense_is_closed(running: Any):
    pytest.importorskip("websockets")
    for nonsense in ("no json", "[1]", b"bytes", '{"a":' * 500 + "1" + "}" * 500):
        with converse(running, "explorer", "watch") as talk:
            assert talk.recv(timeout=PATIENCE) == '{"version":1}'
            talk.send(nonsense)
            with pytest.raises(Exception, match=r"clos|1000|received"):
                talk.recv(timeout=PATIENCE)
    assert ask(running, "explorer", "subject")["version"] == 1


def test_slow_clients_hold_nobody_up(running: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(application, "BODY_SECONDS", 0.5)
    token = urlsplit(running.url).path
    start = f"POST {token}api/network/posteriors HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\n"
    slow = [socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) for _ in range(40)]
    try:
        for i, connection in enumerate(slow):
            # Half of them never end their headers, the other half never their body.
            connection.sendall((start + ("X: y" if i % 2 else "Content-Length: 100\r\n\r\n{")).encode())
        # A machine may be so busy that a good request takes longer than half a second as well.
        assert eventually(lambda: "values" in ask(running, "network", "posteriors"))
        answer = b""
        while b"error" not in answer and (more := slow[0].recv(65536)):
            answer += more
        assert b"400" in answer.split(b"\r\n")[0] and b"has to arrive within 0.5 s" in answer
    finally:
        for connection in slow:
            connection.close()
    assert eventually(lambda: "values" in ask(running, "network", "posteriors"))


def test_work_that_nobody_waits_for_stops(explorer: Callable[..., Any], monkeypatch: pytest.MonkeyPatch):
    began, ended = threading.Event(), threading.Event()

    def endless(subject: Any, asked: Any) -> None:
        began.set()
        while not nobody_waits():
            time.sleep(0.01)
        ended.set()

    page = Page("endless", "Endless", lambda subject: True, {"work": endless})
    monkeypatch.setattr(application, "all_pages", lambda: [page])
    running = explorer(mf.datasets.sprinkler())
    token = urlsplit(running.url).path
    request = (
        f"POST {token}api/endless/work HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nContent-Length: 2\r\n\r\n{{}}"
    )
    connection = socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE)
    connection.sendall(request.encode())
    assert began.wait(PATIENCE) and not ended.is_set()
    connection.close()
    assert ended.wait(PATIENCE)
    assert not nobody_waits()


def nonsense(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(11 if depth < 3 else 8)
    if kind < 8:
        plain = [None, True, -1, 10**12, 0.5, "", "\ud800</script>", "9" * 60, 0, 1, "junction_tree"]
        return rng.choice(plain)
    if kind == 8:
        return [nonsense(rng, depth + 1) for _ in range(rng.randrange(4))]
    keys = ["states", "likelihoods", "do", "0", "3", "-1", "x", "__class__"]
    return {rng.choice(keys): nonsense(rng, depth + 1) for _ in range(rng.randrange(4))}


def test_nonsense_to_every_call_is_no_failure_of_the_server(running: Any):
    from markovfield.explorer.pages.network import PAGE

    keys = ["evidence", "target", "state", "variable", "variables", "nodes", "style", "layout", "moral", "hops", "most",
            "opened", "a", "b", "given", "n_best", "verb", "method", "order", "algebra", "sweeps", "damping", "factor",
            "count", "utility"]  # fmt: skip
    rng = random.Random(5)
    with httpx.Client() as client:
        for name in PAGE.calls:
            for _ in range(2 if name == "picture" else 8):
                # Half of the words are right, so that the wrong ones are reached.
                asked: dict[str, Any] = {"target": 3, "state": 0, "variable": 2, "nodes": [0, 1], "a": [0], "b": [5]}
                for key in rng.sample(keys, 4):
                    asked[key] = nonsense(rng)
                reply = client.post(f"{running.url}api/network/{name}", content=json.dumps(asked))
                assert reply.status_code in (200, 400), (name, asked, reply.text)
                if reply.status_code == 400:
                    assert 10 < len(reply.json()["error"]) < 600
