//! The help texts.

pub(crate) const GIT_ALL: &str = "\
See 'garden help <command>' to read about a specific subcommand

Main Garden Commands
   plant                   Put something into the ground
   water                   Water what grows

Ancillary Commands / Interrogators
   harvest                 Take what has grown
   weigh                   Say how much there is
   credential-weeds.sh     Somebody's script

User-facing file formats
   almanac                 What the almanac looks like

Command aliases
   dig                     !sh -c 'dig'

External commands
   soil-check
";

pub(crate) const GIT_USAGE: &str = "\
usage: garden bed [-v | --verbose]
   or: garden bed add [-t <track>] [-f] [--mirror=<fetch|push>] <name> <url>
   or: garden bed rename [--[no-]progress] <old> <new>
   or: garden bed [push [-p | --patch] [(-m | --message) <message>]
                 [--] [<pathspec>...]]

    -v, --[no-]verbose    be verbose; must be placed before a subcommand
    --[no-]depth <n>      how deep
";

pub(crate) const GIT_DASHES: &str = "\
usage: garden log [<options>] [<range>] [[--] <path>...]

    -q, --[no-]quiet      say less
";

pub(crate) const KUBECTL: &str = "\
Display one or many plots.

Examples:
  # List all plots
  plotctl get plots -o wide

Options:
    -A, --all-plots=false:
\tIf present, list all of them. The plot given by --plot is ignored.

    --chunk-size=500:
\tReturn large lists in chunks.

    -f, --filename=[]:
\tFilename or directory.

    -o, --output='':
\tOutput format. One of: (json, yaml, jsonpath).

Usage:
  plotctl get [(-o|--output=)json|yaml] (KIND[.VERSION] [NAME | -l label] | KIND/NAME ...) [flags] [options]

Use \"plotctl options\" for a list of global command-line options (applies to all commands).
";

pub(crate) const COBRA: &str = "\
Work with hubs from the command line.

USAGE
  hub <command> <subcommand> [flags]

CORE COMMANDS
  issue:         Manage issues
  pull-request, pr  Manage pull requests
  repo:          Manage repositories

FLAGS
      --limit int        How many (default 30)
  -l, --label strings    Filter by label
      --state string     Which (\"open\"|\"closed\"|\"all\") (default \"open\")
  -w, --web              Open the browser

INHERITED FLAGS
  -R, --repo [HOST/]OWNER/REPO   Select another repository

LEARN MORE
  Use `hub <command> --help` for more information about a command.
";

pub(crate) const DOCKER: &str = "\
Usage:  boxer run [OPTIONS] IMAGE [COMMAND] [ARG...]

Create and run a new box from an image

Aliases:
  boxer box run, boxer run

Options:
  -d, --detach                         Run in the background
  -e, --env list                       Set environment variables
      --cpus decimal-or-so             Number of CPUs
      --memory bytes                   Memory limit
      --pull string                    Pull before running (\"always\", \"missing\",
                                       \"never\") (default \"missing\")
      --retries int                    Consecutive failures needed
";

pub(crate) const DOCKER_ROOT: &str = "\
Usage:  boxer [OPTIONS] COMMAND

Common Commands:
  run         Create and run a new box
  ps          List boxes

Management Commands:
  image*      Manage images

Global Options:
  -D, --debug              Enable debug mode

Run 'boxer COMMAND --help' for more information on a command.
";

pub(crate) const CLAP: &str = "\
A builder of crates

Usage: crate [OPTIONS] [COMMAND]

Commands:
  build, b  Compile the current crate
  test      Run the tests
  help      Print this message or the help of the given subcommand(s)

Options:
      --color <WHEN>     Coloring [default: auto] [possible values: auto,
                         always, never]
  -j, --jobs <N>         Number of parallel jobs
  -v, --verbose...       Use verbose output
  -p, --package [<SPEC>]  Package to build
  -h, --help             Print help
";

pub(crate) const ARGPARSE: &str = "\
usage: farm [-h] [--unit {kg,lb}] [--count COUNT] [-q]
            {sow,reap} ... bed [row ...]

Runs a farm.

positional arguments:
  {sow,reap}
    sow          put seeds
    reap         take crops
  bed            which bed

options:
  -h, --help     show this help message and exit
  --unit {kg,lb}
                 what to count in
  --count COUNT  how many; see --unit for
                 --details on that
  -q, --quiet    say less
";

pub(crate) const ARGPARSE_CHOICES: &str = "\
usage: ctl get [-h] [-n NS] {pods,nodes}

positional arguments:
  {pods,nodes}          what to get

options:
  -h, --help            show this help message and exit
  -n NS, --namespace NS
                        the namespace
";

pub(crate) const NPM_ROOT: &str = "\
pkg <command>

Usage:

pkg <command> -h   quick help

All commands:

    access, audit, completion,
    help, install, run, view

Specify configs in the file
";

pub(crate) const NPM: &str = "\
Install a package

Usage:
pkg install [<package-spec> ...]

Options:
[-S|--save|--no-save] [-g|--global]
[--strategy <hoisted|nested|linked>]
[--omit <dev|optional|peer> [--omit <dev|optional|peer> ...]]

  -S|--save
    Save installed packages.

  --omit
    Dependency types to omit.
";

pub(crate) const GNU: &str = "\
Usage: lsx [OPTION]... [FILE]...
List information about the FILEs.

Mandatory arguments to long options are mandatory for short options too.
  -a, --all                  do not ignore entries starting with .
      --block-size=SIZE      with -l, scale sizes by SIZE; see
                               --all for more
      --color[=WHEN]         color the output WHEN
  -x, --extract, --get       take out
  -n,  --lines=[+]NUM         that many
  -H --host=[USER@]HOST       elsewhere
      --help        display this help and exit
      --version     output version information and exit
";

pub(crate) const BUSYBOX: &str = "\
Box v1.35.0 multi-call binary.

Usage: box [function [arguments]...]

Currently defined functions:
\t[, [[, ash, cat,
\tgrep, wget
";

pub(crate) const BSD: &str = "\
unknown option -- -
usage: keymaker [-q] [-a rounds] [-t rsa | ecdsa | ed25519]
       keymaker -F hostname [-lv]
       keymaker -k -f list
                file ...
";

pub(crate) const SYSTEMD: &str = "\
unitctl [OPTIONS...] COMMAND ...

Query or send control commands.

Unit Commands:
  list-units [PATTERN...]             List units currently in memory,
                                      ordered by name
  start UNIT...                       Start (activate) one or more units
  set-property UNIT PROPERTY=VALUE... Sets one or more properties
  daemon-reload                       Reload configuration

Options:
  -h --help           Show this help
  -H --host=[USER@]HOST
                      Operate on remote host
     --no-pager       Do not pipe output into a pager

See the unitctl(1) man page for details.
";

pub(crate) const APT: &str = "\
deb 2.6 (amd64)
Usage: deb-cache [options] command
       deb-cache [options] showsrc pkg1 [pkg2 ...]

deb-cache shows what is in the cache of packages.

Most used commands:
  showsrc - Show source records
  search - Search the package list for a regex pattern
  depends - Show raw dependency information for a package

See deb-cache(8) for more information about the available commands.
";

pub(crate) const GRAMMAR: &str = "\
Usage: net [ OPTIONS ] OBJECT { COMMAND | help }
where  OBJECT := { address | help | link |
                   route }
       OPTIONS := { -V[ersion] | -s[tatistics] }
";

pub(crate) const COLUMNS: &str = "\
help:

Standard commands
asn1parse         ca                ciphers           
x509              

Message Digest commands (see the `dgst' command for more details)
md5               sha1              sha256            
";

pub(crate) const MANUAL: &str = "\
GARDEN-LOG(1)                  Garden Manual                  GARDEN-LOG(1)

NAME
       garden-log - Show what happened

SYNOPSIS
       garden log [<options>] [<range>] [[--] <path>...]

DESCRIPTION
       Shows what happened. Filters such as --since and
       --until can be combined.

OPTIONS
       -<number>, -n <number>, --max-count=<number>
           Limit the number of entries.

       --since=<date>, --after=<date>
           Show what is newer than <date>.

GARDEN                          2026-01-01                    GARDEN-LOG(1)
";
