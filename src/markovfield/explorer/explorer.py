"""The public function: a server on this machine alone, a thread that runs it, and a browser that opens it."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from threading import Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any

from markovfield.exceptions import ModelError
from markovfield.explorer.core.subject import Subject, is_a
from markovfield.explorer.pages import all_pages
from markovfield.extras import check_installed

if TYPE_CHECKING:
    import uvicorn

__all__ = ["Explorer", "explore"]

LOOPBACK = "127.0.0.1"
STARTING, STOPPING = 30.0, 5.0
FOR = (
    "discrete networks, lattices, taggers, parsers, aligners, Markov logic programs, image models, pictures and "
    "training logs"
)


class Explorer:
    """A running explorer; `explore` makes one. As a context manager it closes at the end.

    Attributes
    ----------
    url
        The address, with the token that lets its holder in.
    port
        Where it listens, on 127.0.0.1 only.
    """

    def __init__(self, subject: Subject, port: int = 0) -> None:
        check_installed("the explorer", "starlette", "uvicorn", "websockets")
        import uvicorn

        from markovfield.explorer.application import application

        if not isinstance(port, int) or isinstance(port, bool) or not 0 <= port < 2**16:
            raise ModelError(f"port must be a number from 0 (any free one) to 65535, got {port!r}")
        # Named as TCP, asyncio sends at once what is written; else each answer waits 40 ms for an acknowledgement.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind((LOOPBACK, port))
        except OSError as error:
            self._socket.close()
            reason = (error.strerror or str(error)).lower()
            raise ModelError(f"cannot listen on port {port} of {LOOPBACK}: {reason}") from None
        self.port: int = self._socket.getsockname()[1]
        token = secrets.token_urlsafe(24)
        self.url = f"http://{LOOPBACK}:{self.port}/{token}/"
        config = uvicorn.Config(
            application(subject, token, self.port),
            log_config=None,
            access_log=False,
            log_level="critical",
            server_header=False,
            timeout_graceful_shutdown=1,
            ws="websockets-sansio",
            ws_max_size=16 * 2**20,
        )
        self._server: uvicorn.Server = uvicorn.Server(config)
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._run, name="markovfield-explorer", daemon=True)
        self._thread.start()
        self._wait_for_start()

    def _run(self) -> None:
        try:
            self._server.run([self._socket])
        except BaseException as error:
            self._failure = error

    def _wait_for_start(self) -> None:
        waited = 0.0
        while not self._server.started and self._thread.is_alive() and waited < STARTING:
            self._thread.join(0.01)
            waited += 0.01
        if not self._server.started:
            raise ModelError(f"the explorer's server did not start: {self._failure or 'it ended'}")

    @property
    def running(self) -> bool:
        """Whether it still answers."""
        return self._thread.is_alive()

    def wait(self) -> None:
        """Until somebody closes it; Ctrl-C is raised here as always."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """Stop the server; computations that run are not waited for."""
        self._server.should_exit = True
        self._thread.join(STOPPING)
        self._socket.close()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Explorer({self.url if self.running else 'closed'})"


def explore(model: Any, *, open_browser: bool = True, port: int = 0, block: bool | None = None) -> Explorer:
    """Show a model in the browser: click evidence, paste text, paint pixels, and see what follows and why.

    A small server is started on 127.0.0.1, which other machines cannot reach; its address holds a random token without
    which it answers nothing. Everything the page needs comes from it.

    Parameters
    ----------
    model
        A model, or the path of a file with one: what `read` reads, a Markov logic program (``.mln``), a grammar as text
        (``.pcfg``), what `save` wrote, or a picture (PNG, JPEG, GIF, BMP, WebP). A file is read again when it changes.
        Or an `explorer.TrainingLog`, whose curves grow while a ``fit`` runs with it as its callback.
    open_browser
        Whether to open the page in the usual browser.
    port
        Where to listen; any free port when 0.
    block
        Whether to return only when the server ends or Ctrl-C is pressed; by default so for all but training logs.

    Returns
    -------
    Explorer
        With ``url`` and ``close()``.

    Raises
    ------
    ImportError
        Without the extra: ``pip install "markovfield[explore]"``.
    ModelError
        Where there is no page for such a model, or the port is taken.

    Examples
    --------
    >>> import markovfield as mf
    >>> net = mf.BayesianNetwork({"rain": ["no", "yes"]})
    >>> net.add_cpt("rain", [], [0.8, 0.2])
    >>> with mf.explore(net, open_browser=False, block=False) as explorer:
    ...     print(explorer.url)
    http://127.0.0.1:.../
    """
    subject = Subject(model)
    explorer = Explorer(subject, port)
    if not any(page.offered(subject) for page in all_pages()):
        explorer.close()
        kind = type(subject.model).__name__
        raise ModelError(f"the explorer has no page for a {kind}; it has pages for {FOR}")
    if open_browser:
        webbrowser.open(explorer.url)
    if block or (block is None and not is_a(subject.model, "TrainingLog")):
        try:
            explorer.wait()
        except KeyboardInterrupt:
            pass
        finally:
            explorer.close()
    return explorer
