"""How long a click in the explorer takes until the bars have moved, and what many clicks leave behind.

``python -m benchmarks.explorer [--clicks 10000] [--networks alarm andes munin]``. The server runs in a process of its
own, the page in a headless Chromium. A click observes a state, or takes it back, of one of a tenth of the variables, in
states that a sample of the network gave them; it ends when the page has written the new posteriors into its bars and
laid them out. Beside it the same question by HTTP alone, and what the junction tree took of that.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import ROOT, Network, data_folder, random_evidence, read_network
from benchmarks.measure import Table, machine, save

__all__ = ["main"]

NETWORKS = ("alarm", "andes", "munin")
# Milliseconds that a click may take, nine times in ten.
GOALS = {"alarm": 50.0, "andes": 300.0, "munin": 100.0}
WARM, TIMED, ROUNDS, LOOKS = 20, 300, 10, 40

_SERVER = """
import sys, markovfield as mf
explorer = mf.explore(sys.argv[1], open_browser=False, block=False)
print(explorer.url, flush=True)
explorer.wait()
"""

# Clicks one after another, each when the one before is answered; milliseconds from click to laid out bars.
_CLICK = """async (clicks) => {
  const page = document.querySelector("#page");
  const shown = () => new Promise((done) => {
    const watch = new MutationObserver(() => { watch.disconnect(); done(); });
    watch.observe(page, { attributeFilter: ["data-answered"] });
  });
  const taken = [];
  for (const [v, k] of clicks) {
    document.querySelector(`#variable-${v}`).click();
    // What is not drawn yet is drawn now: that is another click's time.
    while (document.querySelector(".canvas.busy")) await new Promise(requestAnimationFrame);
    const row = document.querySelector(`.panel .bar-row[data-state="${k}"]`);
    const start = performance.now();
    const answered = shown();
    row.click();
    await answered;
    page.querySelector(".panel .bars").getBoundingClientRect();
    taken.push(performance.now() - start);
  }
  return taken;
}"""

# Selecting variables, turning the wheel, typing into the search: milliseconds until it is on the screen.
_LOOK = """async (variables) => {
  const search = document.querySelector("input[type=search]"), canvas = document.querySelector(".canvas");
  const type = (text) => { search.value = text; search.dispatchEvent(new Event("input")); };
  const { left, top, width, height } = canvas.getBoundingClientRect();
  const turn = (deltaY) => canvas.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX: left + width / 2,
    clientY: top + height / 2, bubbles: true, cancelable: true }));
  const acts = { select: (v) => document.querySelector(`#variable-${v}`).click(),
    zoom: (v, i) => turn(i % 2 ? 20 : -20), search: (v, i) => type(i % 2 ? "" : "a") };
  const taken = {};
  for (const [name, act] of Object.entries(acts)) {
    taken[name] = [];
    for (let i = 0; i < variables.length; i++) {
      const start = performance.now();
      act(variables[i], i);
      await new Promise(requestAnimationFrame);
      await new Promise((done) => setTimeout(done));
      taken[name].push(performance.now() - start);
      // What is drawn anew is drawn later.
      while (document.querySelector(".canvas.busy")) await new Promise(requestAnimationFrame);
    }
    type("");
  }
  return taken;
}"""


def _resident(process: int) -> int:
    """Bytes that a process holds; 0 where nobody says."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    except OSError:
        return 0


def _clicks(network: Network, count: int, seed: int = 0) -> list[tuple[int, int]]:
    evidence = list(random_evidence(network).items())
    rng = np.random.default_rng(seed)
    return [evidence[i] for i in rng.integers(0, len(evidence), count)]


def _heap(session: Any) -> tuple[int, int]:
    """Bytes and elements that the page holds after its garbage is collected."""
    session.send("HeapProfiler.collectGarbage")
    told = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
    return int(told["JSHeapUsedSize"]), int(told["Nodes"])


def _by_http(url: str, clicks: list[tuple[int, int]]) -> tuple[list[float], list[float]]:
    """Milliseconds of the same questions without a page: all of it, and the inference alone."""
    import httpx

    states: dict[str, int] = {}
    whole, inference = [], []
    with httpx.Client(timeout=120) as client:
        for v, k in clicks:
            if states.pop(str(v), None) is None:
                states[str(v)] = k
            start = time.perf_counter()
            reply = client.post(f"{url}api/network/posteriors", json={"evidence": {"states": states}})
            whole.append(1e3 * (time.perf_counter() - start))
            # Without evidence the answer is a kept one, and its seconds are of the first time.
            if states:
                inference.append(1e3 * reply.json()["seconds"])
    return whole, inference


def _run(browser: Any, path: Path, clicks: int) -> dict[str, Any]:
    network = read_network(path)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(path)], env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        start = time.perf_counter()
        page.goto(url)
        page.wait_for_selector("#page[data-answered]", timeout=120_000)
        opened = time.perf_counter() - start
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable")
        page.evaluate(_CLICK, _clicks(network, WARM))
        page.evaluate(_CLICK, _clicks(network, WARM)[::-1])
        found = page.evaluate(_CLICK, _clicks(network, TIMED, 1))
        looks = {"as opened": _looks(page, network)}
        whole, inference = _by_http(url, _clicks(network, TIMED, 1))
        result = {"variables": len(network.net.variables), "opened": opened, "page": found, "http": whole,
                  "inference": inference, "looks": looks, "resident": [_resident(server.pid)],
                  "heap": [_heap(session)]}  # fmt: skip
        for i in range(ROUNDS if clicks else 0):
            page.evaluate(_CLICK, _clicks(network, clicks // ROUNDS, 2 + i))
            result["resident"].append(_resident(server.pid))
            result["heap"].append(_heap(session))
        # All of it at once, which is the hardest to keep moving.
        page.get_by_label("Show").select_option("whole")
        page.get_by_label("Nodes").select_option("bars")
        page.wait_for_selector(".canvas:not(.busy)", timeout=120_000)
        page.get_by_role("button", name="Fit").click()
        looks["all with bars"] = _looks(page, network)
        page.close()
        return result
    finally:
        server.terminate()
        server.wait()


def _looks(page: Any, network: Network) -> dict[str, list[float]]:
    """Milliseconds of what does not change the evidence, and of clicks, in the drawing as it stands."""
    variables = np.random.default_rng(7).integers(0, len(network.net.variables), LOOKS).tolist()
    taken: dict[str, list[float]] = page.evaluate(_LOOK, variables)
    return taken | {"click": page.evaluate(_CLICK, _clicks(network, LOOKS, 8))}


def _share(times: list[float], share: float) -> float:
    return float(np.quantile(times, share))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--clicks", type=int, default=10_000, help="on the first network, to look for leaks")
    asked = parser.parse_args()
    found = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        print("the explorer's clicks need playwright and a Chromium on the path: not measured")
        return
    results: dict[str, Any] = {"machine": machine()}
    headers = [
        "network",
        "variables",
        "click p50",
        "p95",
        "HTTP p50",
        "p95",
        "inference p50",
        "p95",
        "goal p95",
        "opens s",
    ]
    table = Table("Milliseconds from a click to the posteriors on the page", headers)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found, args=["--headless", "--no-sandbox", "--disable-gpu"])
        for i, name in enumerate(asked.networks):
            one = _run(browser, data_folder() / "bif" / f"{name}.bif.gz", 0 if i else asked.clicks)
            results[name] = one
            shares = [_share(one[kind], q) for kind in ("page", "http", "inference") for q in (0.5, 0.95)]
            table.row(name, one["variables"], *shares, GOALS.get(name), one["opened"])
        browser.close()
    acts = [f"{name} {share}" for name in ("select", "zoom", "search", "click") for share in ("p50", "p95")]
    looking = Table("Milliseconds of other interactions (goal 100)", ["network", "drawing", *acts])
    for name in asked.networks:
        for drawing, taken in results[name]["looks"].items():
            looking.row(name, drawing, *(_share(times, q) for times in taken.values() for q in (0.5, 0.95)))
    memory = Table(f"What {asked.clicks:,} clicks on {asked.networks[0]} leave behind", [
        "clicks", "server MiB", "page's heap MiB", "page's nodes"])  # fmt: skip
    first = results[asked.networks[0]]
    for i, (held, (heap, nodes)) in enumerate(zip(first["resident"], first["heap"], strict=True)):
        memory.row(i * asked.clicks // ROUNDS, held / 2**20, heap / 2**20, nodes)
    for name in asked.networks[1:]:
        memory.note(f"{name}: the server holds {results[name]['resident'][0] / 2**20:,.0f} MiB")
    save("explorer", results)


if __name__ == "__main__":
    main()
