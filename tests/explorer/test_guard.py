"""Only this machine, only with the token, only the files of the table."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

import markovfield as mf
from tests.explorer.streaming import PATIENCE, patient

httpx = patient()


@pytest.fixture
def running(explorer: Callable[..., Any]) -> Any:
    return explorer(mf.datasets.sprinkler())


def test_it_listens_on_loopback_only(running: Any):
    assert running._socket.getsockname()[0] == "127.0.0.1"
    assert urlsplit(running.url).hostname == "127.0.0.1"
    others = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for address in others:
        with (
            pytest.raises(OSError, match=r"refused|timed out|unreachable"),
            socket.create_connection((address, running.port), timeout=2),
        ):
            pass


def test_with_the_token_it_answers_and_restricts_the_browser(running: Any):
    reply = httpx.get(running.url)
    assert reply.status_code == 200
    policy = reply.headers["content-security-policy"]
    assert "script-src 'self'" in policy and "unsafe" not in policy
    assert reply.headers["referrer-policy"] == "no-referrer"
    assert "server" not in reply.headers


@pytest.mark.parametrize("path", ["", "static/explorer.js", "wrong/", "wrong/static/explorer.js"])
def test_without_the_token_nothing_is_answered(running: Any, path: str):
    reply = httpx.get(f"http://127.0.0.1:{running.port}/{path}")
    assert reply.status_code == 403
    assert "lacks the token" in reply.text


def test_the_address_without_its_last_stroke_leads_to_the_page(running: Any):
    reply = httpx.get(running.url.rstrip("/"))
    assert reply.status_code == 307 and reply.headers["location"] == urlsplit(running.url).path
    assert "content-security-policy" in reply.headers
    assert httpx.get(running.url.rstrip("/"), follow_redirects=True).text.startswith("<!doctype html>")
    assert httpx.get(f"http://127.0.0.1:{running.port}/wrong").status_code == 403
    assert httpx.get(running.url.rstrip("/"), headers={"host": "evil.example"}).status_code == 403


def test_calls_need_the_token(running: Any):
    reply = httpx.post(f"http://127.0.0.1:{running.port}/wrong/api/explorer/subject", json={})
    assert reply.status_code == 403


@pytest.mark.parametrize("path", ["wrong/streams/explorer/watch", "streams/explorer/watch"])
def test_websockets_need_the_token(running: Any, path: str):
    client = pytest.importorskip("websockets.sync.client")
    with pytest.raises(Exception, match="403"), client.connect(f"ws://127.0.0.1:{running.port}/{path}"):
        pass


def test_websockets_of_other_pages_are_refused(running: Any):
    client = pytest.importorskip("websockets.sync.client")
    address = running.url.replace("http", "ws", 1) + "streams/explorer/watch"
    with pytest.raises(Exception, match="403"), client.connect(address, origin="http://evil.example"):
        pass
    with client.connect(address, open_timeout=PATIENCE) as socket_:
        assert socket_.recv(PATIENCE) == '{"version":1}'


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "127.0.0.1"])
def test_other_names_of_the_host_are_refused(running: Any, host: str):
    reply = httpx.get(running.url, headers={"host": host})
    assert reply.status_code == 403
    assert "127.0.0.1 and localhost only" in reply.text


def test_other_origins_are_refused(running: Any):
    reply = httpx.post(running.url + "api/explorer/subject", json={}, headers={"origin": "http://evil.example"})
    assert reply.status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "static/../guard.py",
        "static/%2e%2e/guard.py",
        "static/..%2f..%2fexplorer.py",
        "static//etc/passwd",
        "../../etc/passwd",
        "static/pages",
        "static/",
        "static/%00",
    ],
)
def test_no_path_reaches_the_file_system(running: Any, path: str):
    with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as connection:
        token = urlsplit(running.url).path
        request = f"GET {token}{path} HTTP/1.1\r\nHost: 127.0.0.1:{running.port}\r\nConnection: close\r\n\r\n"
        connection.sendall(request.encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b"404" in answer.split(b"\r\n")[0]
    assert b"import" not in answer and b"root:" not in answer


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("{", "the request must be a JSON object, and this is no JSON"),
        ("[1]", "the request must be a JSON object, got list"),
        ("[" * 100_000, "the request must be a JSON object, and this is no JSON"),
        (b"\xff", "the request must be a JSON object, and this is no JSON"),
    ],
)
def test_what_is_no_json_gives_a_sentence(running: Any, body: Any, sentence: str):
    reply = httpx.post(running.url + "api/explorer/subject", content=body)
    assert reply.status_code == 400
    assert reply.json()["error"] == sentence


def test_a_huge_request_gives_a_sentence(running: Any):
    reply = httpx.post(running.url + "api/explorer/subject", content=b" " * (16 * 2**20 + 1))
    assert reply.json()["error"] == "a request may have 16777216 bytes, this one has more"


def test_unknown_calls_and_pages_give_a_sentence(running: Any):
    assert httpx.post(running.url + "api/network/nothing", json={}).json()["error"].startswith("there is no call")
    assert httpx.get(running.url + "nothing").json()["error"] == "there is no such page"


def test_a_port_that_is_taken(running: Any):
    with pytest.raises(mf.ModelError, match=f"cannot listen on port {running.port} of 127.0.0.1"):
        mf.explore(mf.datasets.sprinkler(), open_browser=False, port=running.port)


@pytest.mark.parametrize("port", [-1, 65536, "80", True])
def test_a_port_that_is_none(port: Any):
    with pytest.raises(mf.ModelError, match="port must be a number from 0"):
        mf.explore(mf.datasets.sprinkler(), open_browser=False, port=port)


def test_closing_ends_the_server():
    with mf.explore(mf.datasets.sprinkler(), open_browser=False, block=False) as explorer:
        assert explorer.running and explorer.url in repr(explorer)
    assert not explorer.running and repr(explorer) == "Explorer(closed)"
    with pytest.raises(httpx.ConnectError):
        httpx.get(explorer.url)
