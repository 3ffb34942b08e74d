"""Runs the security corpora against the built binary and judges what can be seen from outside."""

import argparse
import json
import os
import sys
from pathlib import Path

import env
import http_edge
import jsonrpc
import oauth
import oauth_server
import sse
import ssrf
from common import Report

CORPORA = {
    "ssrf": ("ssrf.jsonl", ssrf.run),
    "http": ("http_edge.jsonl", http_edge.run),
    "jsonrpc": ("jsonrpc_malformed.jsonl", jsonrpc.run),
    "sse": ("sse_malformed.jsonl", sse.run),
    "env": ("secret_env.jsonl", env.run),
    "oauth": ("oauth_attacks.jsonl", oauth.run),
    "oauth-server": ("oauth_attacks.jsonl", oauth_server.run),
}


def arguments():
    parser = argparse.ArgumentParser(prog="./dev/attacks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CORPORA)}; all of them if none is given")
    parser.add_argument("--binary", default="target/ci/capstan", help="the binary to test (default: %(default)s)")
    parser.add_argument("--only", metavar="TEXT", help="only rows whose id, url or name contains this text")
    parser.add_argument("--verbose", action="store_true", help="print a line for each row and feed")
    parser.add_argument("--json", action="store_true", help="print one JSON object per row and feed")
    parser.add_argument("--inside", metavar="PART/PARTS", help=argparse.SUPPRESS)
    given = parser.parse_args()
    for name in given.names:
        if name not in CORPORA:
            parser.error(f"no corpus `{name}`; the names are: {', '.join(CORPORA)}")
    return given


def read(folder, file, only):
    rows = []
    for number, line in enumerate((folder / file).read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        row = json.loads(line)
        row["_label"] = row.get("id") or row.get("url") or row.get("name") or f"{file}:{number}"
        row["_folder"] = folder
        # Rows without a class are grouped by the first words of their id.
        row["group"] = "-".join(row["_label"].split("-")[:2])
        if only is None or only in row["_label"]:
            rows.append(row)
    return rows


def main():
    given = arguments()
    binary = Path(given.binary).resolve()
    if not os.access(binary, os.X_OK):
        print(f"error: `{given.binary}` is not a program; build it, or name another with --binary", file=sys.stderr)
        return 2
    folder = Path(os.environ.get("CAPSTAN_BENCH_DATA", "../shared/data")) / "security"
    report = Report(given.verbose, given.json)
    for name in given.names or CORPORA:
        file, run = CORPORA[name]
        if not (folder / file).is_file():
            print(
                f"error: the corpus `{folder / file}` is missing;"
                " set CAPSTAN_BENCH_DATA to the folder that has `security` in it",
                file=sys.stderr,
            )
            return 2
        report.corpus = name
        rows = read(folder, file, given.only)
        if name in ("ssrf", "oauth"):
            run(rows, binary, report, given)
        else:
            run(rows, binary, report)
    if given.inside:
        return 0
    return report.finish()


sys.exit(main())
