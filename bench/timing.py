"""The timing model against published figures: fit its numbers, or predict a kernel of any size.

    python bench/timing.py fit [--data ../shared/timing] [--write]
    python bench/timing.py left-out [--kernel flash_attention]
    python bench/timing.py predict gemm --target a2a3 --cores 24 --m 6144 --k 6144 --n 6144
    python bench/timing.py predict flash_attention --target a2a3 --s0 128 --s1 8192 --head 128
    python bench/timing.py predict topk --target a2a3 --cores 48 --rows 4800
    python bench/timing.py speed

`fit` prints the residual of every figure with the numbers of the parameter files, then with the
fitted ones, and for single instructions what remains when each shape is left out; `--write` puts
the fitted values, with their residuals, into the files. `left-out` does that for whole kernels: it
fits anew without each run, and says how far off that run is then (minutes for the products).
`predict` prints one line of JSON. `speed` says how many events a second all of that follows: whole
launches, and what the model has left of them when like blocks are one; by the time of the process.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from published import conv2d, flash_attention, gemm, mx_matmul, topk
from published.grid import Case

from ptokit.timing.model import Model
from ptokit.timing.report import Timing

ROOT = Path(__file__).resolve().parent
CASES = {
    "gemm": gemm.case,
    "conv2d": conv2d.case,
    "matmul_mxfp8": partial(mx_matmul.case, mx_matmul.FP8),
    "matmul_mxfp4": partial(mx_matmul.case, mx_matmul.FP4),
    "flash_attention": flash_attention.case,
    "topk": topk.case,
}
CORES = {"a2a3": {"topk": 48}, "a5": {}}  # where it is not one a cube core
CUBE_CORES = {"a2a3": 24, "a5": 32}
SIZES = ("m", "k", "n", "s0", "s1", "head", "rows")
# Clock of the published runs of attention: other cores ran at the file's.
CLOCKS = {"flash_attention": 1.80}
# How the published tables call the pipes.
PIPES = {"cube": "M", "vector": "V", "extract": "MTE1", "load": "MTE2"}


def timed(kernel: str, target: str, cores: int | None, **size: int) -> Timing:
    """A published kernel of some size."""
    cores = cores or CORES[target].get(kernel) or CUBE_CORES[target]
    case: Case = CASES[kernel](cores, **size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = case.kernel.time(case.blocks, case.args, target=target, **case.consts)
    return found.what_if(cores=cores, clock=CLOCKS.get(kernel))


def predict(options: argparse.Namespace) -> None:
    size = {name: value for name in SIZES if (value := getattr(options, name)) is not None}
    found = timed(options.kernel, options.target, options.cores, **size)
    names = {pipe: name for name, pipe in PIPES.items()}
    names["FIX" if "FIX" in found.busy else "MTE3"] = "store"
    line = {
        "us": round(found.us, 2),
        "busy": {names.get(pipe, pipe): round(100 * s, 1) for pipe, s in found.busy.items()},
        "roofline_us": round(found.roofline_us, 2),
        "validated": found.validated,
        "params": found.params.digest,
    }
    print(json.dumps(line))


# A matrix product that has loops, an unrolled kernel on clusters, one that runs as it stands.
FAST = {
    "gemm": {"m": 6144, "k": 6144, "n": 6144},
    "flash_attention": {"s0": 3072, "s1": 4096},
    "topk": {"rows": 4800},
}


def speed() -> None:
    for kernel, size in FAST.items():
        cores = CORES["a2a3"].get(kernel) or CUBE_CORES["a2a3"]
        case: Case = CASES[kernel](cores, **size)
        for turn in ("first", "again"):  # the first launch is compiled as well
            began = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = case.kernel.time(case.blocks, case.args, target="a2a3", **case.consts)
            walked = time.process_time() - began
            Model(found.streams, found.params, cores).run()
            modelled = time.process_time() - began - walked
            events = found.streams.events
            followed = sum(len(core.stream.items) for core in found.outcome.cores)
            print(
                f"{kernel:16} {turn}: {events:9,} events in {walked:5.2f} s, "
                f"{events / walked:9,.0f} a second; the model alone {followed / modelled:9,.0f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fitting = commands.add_parser("fit")
    fitting.add_argument("--data", type=Path, default=ROOT.parent.parent / "shared" / "timing")
    fitting.add_argument("--write", action="store_true")
    leaving = commands.add_parser("left-out")
    leaving.add_argument("--data", type=Path, default=ROOT.parent.parent / "shared" / "timing")
    leaving.add_argument("--kernel", choices=CASES, default="")
    commands.add_parser("speed")
    asked = commands.add_parser("predict")
    asked.add_argument("kernel", choices=CASES)
    asked.add_argument("--target", choices=CUBE_CORES, default="a2a3")
    asked.add_argument("--cores", type=int)
    for name in SIZES:
        asked.add_argument(f"--{name}", type=int)
    options: Any = parser.parse_args()
    if options.command == "predict":
        predict(options)
    elif options.command == "speed":
        speed()
    elif options.command == "left-out":
        from fitting import cross_validate

        cross_validate(options.data, options.kernel, timed, PIPES)
    else:
        from fitting import fit

        fit(options.data, options.write, timed, PIPES)


if __name__ == "__main__":
    main()
