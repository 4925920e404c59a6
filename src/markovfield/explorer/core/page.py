"""What a page of the explorer is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from markovfield.explorer.core.subject import Subject

__all__ = ["Call", "Channel", "Page", "Stream"]


class Channel(Protocol):
    """One end of a conversation with the browser; the other end is ``context.stream`` of a page's module."""

    @property
    def closed(self) -> bool:
        """Whether the browser has gone or the server stops."""

    def send(self, message: Any) -> None:
        """Send bytes as they are, or what JSON can hold; waits while the browser is behind."""

    def latest(self, timeout: float | None = 0.0) -> Any:
        """The last thing that the browser said since the last call, or None; waits for one as long as told."""


Call = Callable[[Subject, dict[str, Any]], Any]
Stream = Callable[[Subject, Channel], None]


@dataclass(frozen=True)
class Page:
    """One page.

    Attributes
    ----------
    name, title
        The name of its modules, and what its tab says.
    offered
        Whether it is for this model.
    calls
        By name, what the browser may ask: a dict in, what JSON can hold out.
    streams
        By name, conversations.
    """

    name: str
    title: str
    offered: Callable[[Subject], bool]
    calls: Mapping[str, Call] = field(default_factory=dict)
    streams: Mapping[str, Stream] = field(default_factory=dict)
