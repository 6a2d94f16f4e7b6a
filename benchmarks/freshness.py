"""Lists GPU results that are older than the code: their kernels compile to other PTX by now. Needs no GPU.

    python benchmarks/freshness.py

Being out of date is no failure: the author of a change may have no GPU. Results that cannot be read are one.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tessera.bench.cuda import declarations, records
from tessera.errors import TesseraError

HERE = Path(__file__).parent


def main(results: Path = HERE / "results", rows: Path = HERE / "gpu_rows") -> int:
    try:
        declarations.load(rows)
        found, compared = records.stale(results, declarations.KERNELS)
    except TesseraError as error:
        print(f"freshness: {error}", file=sys.stderr)
        return 1
    print(f"freshness: {len(found)} of {compared} measured kernels have changed since{':' if found else '.'}")
    for one in found:
        print(f"  {one}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
