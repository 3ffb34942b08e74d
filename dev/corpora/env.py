"""Rows of secret_env.jsonl: which variables of Capstan's environment a server over stdio gets."""

import json
import sys

from common import NotUnderstood, World, toml
from peers import STDIO

# Variables that mean nothing on this system.
WINDOWS = set(
    "ALLUSERSPROFILE APPDATA COMMONPROGRAMFILES COMPUTERNAME COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA"
    " PATHEXT PROCESSOR_ARCHITECTURE PROGRAMDATA PROGRAMFILES PSMODULEPATH SYSTEMDRIVE SYSTEMROOT"
    " USERDOMAIN USERPROFILE WINDIR".split()
)

# The value that the project file sets.
SET = "/nonexistent/project"


def run(rows, binary, report):
    names = [row["name"] for row in rows]
    values = {name: f"/nonexistent/attacks-{number}" for number, name in enumerate(names)}
    world = World(binary)
    server = world.root / "server.py"
    server.write_text(STDIO)
    kept = [row["name"] for row in rows if expectation(row) == "passthrough"]
    command = f"command = {toml(sys.executable)}\nargs = [\"-I\", \"-S\", {toml(str(server))}]\n"
    world.configure(
        f"[servers.plain]\n{command}[servers.passing]\n{command}"
        f"env_passthrough = [{', '.join(toml(name) for name in kept)}]\n"
    )
    # The binary and the server need these themselves, so that their real values are used.
    for name in ("PATH", "HOME"):
        if name in values:
            values[name] = world.env[name]
    for name in values:
        if name.startswith("XDG_") or name in ("TMPDIR", "TMP", "TEMP"):
            values[name] = str(world.root / name.lower())
            (world.root / name.lower()).mkdir(mode=0o700, exist_ok=True)
    config = values.get("XDG_CONFIG_HOME")
    if config:
        (world.root / "xdg_config_home").rmdir()
        (world.root / "xdg_config_home").symlink_to(world.root / ".config")
    env = {**world.env, **values}
    seen = {server: environment(world, env, server) for server in ("plain", "passing")}
    untrusted = project_environment(world, command, [row["name"] for row in rows if "untrusted" in row.get("expected", "")])
    for row in rows:
        if "untrusted" in row.get("expected", ""):
            why = "an unapproved project file set it" if row["name"] in untrusted else ""
            report.add(row, "unapproved project file", "failed" if why else "passed", why)
        if row["name"].upper() in WINDOWS and expectation(row) == "keep" and row["name"] not in seen["plain"]:
            report.add(row, "environment", "skipped", "means nothing on this system")
        else:
            report.judge(row, "environment", lambda: judge(row, values, seen))
    world.close()


def call(server):
    return ["call", f"{server}__tool", "environ=1", "--json"]


def environment(world, env, server, cwd=None):
    code, out, err = world.run(call(server), env=env, cwd=cwd)
    if code != 0:
        raise SystemExit(f"error: the server that reports its environment failed: {out!r} {err[-500:]!r}")
    answer = json.loads(out)
    content = answer.get("content") or answer.get("result", {}).get("content")
    return dict(line.split("=", 1) for line in content[0]["text"].splitlines() if "=" in line)


def project_environment(world, command, names):
    """The names that a project file can set for its servers without an approval.

    As a control, each server must start once the file is approved, unless its variable is refused
    by name: a server that cannot start for another reason shows nothing.
    """
    project = world.root / "project"
    (project / ".capstan").mkdir(parents=True)
    (project / ".git").mkdir()
    servers = {f"project-{number}": name for number, name in enumerate(names)}
    sections = [f"[servers.control]\n{command}"]
    sections += [f"[servers.{server}]\n{command}env = {{ {toml(name)} = {toml(SET)} }}\n" for server, name in servers.items()]
    (project / ".capstan" / "config.toml").write_text("".join(sections))
    unapproved = {name for server, name in servers.items() if SET.encode() in world.run(call(server), cwd=project)[1]}
    if world.run(call("control"), cwd=project)[0] == 0:
        raise SystemExit("error: a server of the unapproved project file was started")
    code, out, err = world.run(["trust", "--yes"], cwd=project)
    if code != 0:
        raise SystemExit(f"error: the project file could not be approved: {out!r} {err[-500:]!r}")
    environment(world, world.env, "control", cwd=project)
    for server, name in servers.items():
        code, out, err = world.run(call(server), cwd=project)
        if code != 0 and f"servers.{server}.env.{name}" not in out.decode("utf-8", "replace"):
            raise SystemExit(f"error: `{server}` of the approved project file failed: {out!r} {err[-500:]!r}")
    return unapproved


def expectation(row):
    expected = row.get("expected", "")
    for word, meaning in (("passthrough", "passthrough"), ("strip", "strip"), ("keep", "keep")):
        if word in expected:
            return meaning
    return None


def judge(row, values, seen):
    name, expected = row["name"], expectation(row)
    there = {server: found.get(name) for server, found in seen.items()}
    if expected == "strip":
        return f"the server got it ({there['plain']!r})" if there["plain"] is not None else None
    if expected == "keep":
        return None if there["plain"] == values[name] else f"the server got {there['plain']!r}, not {values[name]!r}"
    if expected == "passthrough":
        return None if there["passing"] == values[name] else "env_passthrough did not pass it on"
    raise NotUnderstood(f"expected = {row.get('expected')!r}")
