"""What people do on the page of networks, and what they read there."""

from __future__ import annotations

from typing import Any

import numpy as np


def choose(page: Any, variable: int) -> None:
    """Select a variable in the list."""
    page.locator(f"#variable-{variable}").click()


def observe(page: Any, variable: int, state: int) -> None:
    """Select a variable and click one of its states in the panel."""
    choose(page, variable)
    page.locator(f'.panel .bar-row[data-state="{state}"]').click()


def answered(page: Any, evidence: str) -> None:
    """Wait until what is shown follows from this evidence, as the address writes it."""
    page.locator(f'#page[data-answered="{evidence}"]').wait_for()


def posterior(page: Any, variable: int) -> np.ndarray:
    """The probabilities of the selected variable, with all digits that a number's title tells."""
    choose(page, variable)
    told = page.evaluate("[...document.querySelectorAll('.panel .bars .number')].map((x) => x.title)")
    return np.array(told, np.float64)


def open_panel(page: Any, name: str) -> Any:
    """Open a panel; what it shows."""
    page.locator(f'.panel-tabs [data-panel="{name}"]').click()
    return page.locator(f'.panel[data-panel="{name}"]')


def press(page: Any, task: str) -> None:
    """Press a button that asks the server, and wait for what it says."""
    page.locator(f'.panel [data-do="{task}"]').click()
    page.locator(".panel .busy").first.wait_for(state="detached")


def take(page: Any, kind: str) -> Any:
    """Export: the file's suggested name and its bytes."""
    page.locator(".menu summary").click()
    with page.expect_download() as download:
        page.locator(f'[data-export="{kind}"]').click()
    with open(download.value.path(), "rb") as file:
        return download.value.suggested_filename, file.read()
