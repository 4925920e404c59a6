"""What `.ci/wheel-test` asks of an installed wheel, in an environment without extras and without this checkout."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import markovfield as mf


def main() -> None:
    folder = Path(mf.__file__).parent
    assert folder.parent.name == "site-packages", f"not the wheel, but {folder}"
    assert (folder / "py.typed").is_file() and (folder / "__init__.pyi").is_file()
    assert (folder / "explorer" / "static" / "index.html").is_file(), "the page of the explorer was left out"
    for name in mf.__all__:
        getattr(mf, name)
    net = mf.MarkovNetwork({"rain": ["no", "yes"], "wet": ["no", "yes"]})
    net.add_factor(["rain"], [4, 1])
    net.add_factor(["rain", "wet"], [[9, 1], [1, 9]])
    answer = mf.marginals(net, {"wet": "yes"}, method="junction_tree")
    assert math.isclose(answer.probability_of("rain", "yes"), 9 / 13), answer
    assert mf.decode(net, method="junction_tree").assignment == {"rain": "no", "wet": "no"}
    versions = {name: getattr(sys.modules.get(name), "__version__", "-") for name in ("numpy", "scipy", "numba")}
    sys.stdout.write(f"markovfield {mf.__version__} with {versions}\n")


if __name__ == "__main__":
    main()
