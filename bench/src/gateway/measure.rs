//! What is measured of the gateway, and the goals.

use super::setup::{Era, Front, Ran, Server, Setup, Watch};
use super::{Effort, Goal, Line};

const MIB: f64 = 1024.0 * 1024.0;

/// Calls of 100 bytes, all peers in turns.
pub(crate) fn calls(effort: Effort) -> anyhow::Result<Vec<Line>> {
    let stdio = || Server::Stdio(vec![]);
    let mut setup = Setup::new();
    let backend = setup.backend_and_direct()?;
    setup.bare("bare-stdio-2t", &stdio())?;
    setup.capstan("http-to-stdio", Front::Http, &[stdio()])?;
    setup.bare("bare-http-2t", &Server::Http(backend))?;
    setup.capstan("http-to-http", Front::Http, &[Server::Http(backend)])?;
    setup.capstan("stdio-to-stdio", Front::Stdio, &[stdio()])?;
    let words = ["load", "--payload", "100", "--conc", "1,16,64"];
    let words = [&words[..], &effort.load()].concat();
    let Ran { tables, .. } = setup.run(&words, Watch::Nothing)?;
    let (one, some, many) = (tables.load(100, 1)?, tables.load(100, 16)?, tables.load(100, 64)?);

    let (cpu, rate, p99) = ("CPU µs/call", "calls/s", "p99 µs");
    let direct = one.number("direct", "p50 µs")?;
    let added = |peer| anyhow::Ok(one.number(peer, "p50 µs")? - direct);
    let (bare, ours) = ("bare-stdio-2t", "http-to-stdio");
    let front = some.number(ours, cpu)?;
    let mut lines = vec![
        Line::ratio("HTTP to stdio, 16 at once: CPU µs/call", front, some.number(bare, cpu)?)
            .goal(Goal::AtMost(1.5)),
        Line::ratio(
            "HTTP to stdio, 64 at once: calls/s",
            many.number(ours, rate)?,
            many.number(bare, rate)?,
        )
        .goal(Goal::AtLeast(0.7)),
        Line::ratio("HTTP to stdio, 1 at once: added p50 µs", added(ours)?, added(bare)?)
            .goal(Goal::AtMost(1.5)),
        Line::ratio(
            "HTTP to stdio, 64 at once: p99 µs",
            many.number(ours, p99)?,
            many.number(bare, p99)?,
        )
        .goal(Goal::AtMost(1.2)),
    ];
    let (bare, ours) = ("bare-http-2t", "http-to-http");
    let of_http = [
        ("HTTP to HTTP, 16 at once: CPU µs/call", some, cpu, Goal::AtMost(1.5)),
        ("HTTP to HTTP, 64 at once: calls/s", many, rate, Goal::AtLeast(0.8)),
    ];
    for (what, table, column, goal) in of_http {
        let (ours, bare) = (table.number(ours, column)?, table.number(bare, column)?);
        lines.push(Line::ratio(what, ours, bare).goal(goal));
    }
    let stdio = some.number("stdio-to-stdio", cpu)?;
    lines.push(
        Line::ratio("stdio front beside HTTP front, 16 at once: CPU µs/call", stdio, front)
            .goal(Goal::AtMost(1.0)),
    );
    Ok(lines)
}

/// Calls of 100 bytes by clients of both eras, each beside the other and beside a bare proxy.
pub(crate) fn eras(effort: Effort) -> anyhow::Result<Vec<Line>> {
    let server = || Server::Stdio(vec![]);
    let mut setup = Setup::new();
    for (era, bare, http, stdio) in [
        (Era::Legacy, "bare-legacy", "http-legacy", "stdio-legacy"),
        (Era::Modern, "bare-modern", "http-modern", "stdio-modern"),
    ] {
        setup.bare(bare, &server())?;
        setup.spoken(era);
        setup.capstan(http, Front::Http, &[server()])?;
        setup.spoken(era);
        setup.capstan(stdio, Front::Stdio, &[server()])?;
        setup.spoken(era);
    }
    let words = ["load", "--payload", "100", "--conc", "16"];
    let words = [&words[..], &effort.load()].concat();
    let Ran { tables, .. } = setup.run(&words, Watch::Nothing)?;
    let table = tables.load(100, 16)?;
    let (cpu, rate) = ("CPU µs/call", "calls/s");
    let compared = [
        (
            "HTTP to stdio, 2026-07-28 beside a bare proxy: CPU µs/call",
            ("http-modern", "bare-modern", cpu),
            Goal::AtMost(1.5),
        ),
        (
            "HTTP to stdio, 2026-07-28 beside 2025-11-25: CPU µs/call",
            ("http-modern", "http-legacy", cpu),
            Goal::AtMost(1.15),
        ),
        (
            "HTTP to stdio, 2026-07-28 beside 2025-11-25: calls/s",
            ("http-modern", "http-legacy", rate),
            Goal::AtLeast(0.87),
        ),
        (
            "stdio to stdio, 2026-07-28 beside 2025-11-25: CPU µs/call",
            ("stdio-modern", "stdio-legacy", cpu),
            Goal::AtMost(1.15),
        ),
    ];
    let mut lines = Vec::new();
    for (what, (ours, other, column), goal) in compared {
        let (ours, other) = (table.number(ours, column)?, table.number(other, column)?);
        lines.push(Line::ratio(what, ours, other).goal(goal));
    }
    Ok(lines)
}

/// Calls of 1 MiB.
pub(crate) fn large_calls(effort: Effort) -> anyhow::Result<Vec<Line>> {
    let mut setup = Setup::new();
    let backend = setup.backend_and_direct()?;
    setup.bare("bare-http-2t", &Server::Http(backend))?;
    setup.capstan("http-to-http", Front::Http, &[Server::Http(backend)])?;
    let words = ["load", "--payload", "1048576", "--conc", "16"];
    let words = [&words[..], &effort.load()].concat();
    let Ran { tables, peak_mib } = setup.run(&words, Watch::Memory)?;
    if peak_mib == 0.0 {
        anyhow::bail!("the gateway's memory could not be read");
    }
    let table = tables.first()?;
    let cpu = |peer| table.number(peer, "CPU µs/call");
    let ratio = Line::ratio(
        "1 MiB, HTTP to HTTP, 16 at once: CPU µs/call",
        cpu("http-to-http")?,
        cpu("bare-http-2t")?,
    );
    Ok(vec![
        ratio.goal(Goal::AtMost(1.5)),
        Line::value("1 MiB, HTTP to HTTP, 16 at once: most RSS, MiB", peak_mib)
            .goal(Goal::AtMost(40.0)),
    ])
}

/// Memory at rest, and what a list of 10,000 tools costs.
pub(crate) fn idle_and_list(effort: Effort) -> anyhow::Result<Vec<Line>> {
    let mut idle_of = [Vec::new(), Vec::new()];
    for _ in 0..effort.reps() {
        let idle = idle()?;
        for (all, one) in idle_of.iter_mut().zip(idle) {
            all.push(one);
        }
    }
    let [one, fifty] = idle_of.map(median);

    let mut setup = Setup::new();
    let direct = setup.direct(&["--tools", "10000"])?;
    setup.capstan("capstan", Front::Http, &[Server::Http(direct)])?;
    let words = [&["list", "--calls", "20"][..], &effort.repeated()].concat();
    let Ran { tables, .. } = setup.run(&words, Watch::Nothing)?;
    let table = tables.first()?;
    let (ours, all) = (table.number("capstan", "tools")?, table.number("direct", "tools")?);
    if ours < all {
        anyhow::bail!("the gateway lists {ours} of {all} tools");
    }
    let cpu = |peer| table.number(peer, "CPU ms");
    let grown = table.number("capstan", "RSS MiB")? - one;
    let bytes = table.number("capstan", "bytes")? / MIB;
    Ok(vec![
        Line::ratio("10,000 tools, tools/list: CPU ms", cpu("capstan")?, cpu("direct")?)
            .goal(Goal::AtMost(2.0)),
        Line::ratio("10,000 tools: RSS more than idle, beside the list, MiB", grown, bytes)
            .goal(Goal::AtMost(3.0)),
        Line::value("idle with 1 stdio server: RSS, MiB", one).goal(Goal::AtMost(12.0)),
        Line::value("idle with 50 stdio servers: RSS, MiB", fifty).goal(Goal::AtMost(20.0)),
    ])
}

/// The time to a list of nine servers' tools while the tenth sleeps, each start in a new home.
pub(crate) fn start(effort: Effort) -> anyhow::Result<Vec<Line>> {
    let mut times = Vec::new();
    for _ in 0..effort.reps() {
        let mut servers: Vec<_> = (0..9).map(|_| Server::Stdio(vec![])).collect();
        servers.push(Server::Stdio(vec!["--start-delay-ms", "5000"]));
        let mut setup = Setup::new();
        setup.capstan("capstan", Front::Http, &servers)?;
        setup.expect_tools(90);
        let Ran { tables, .. } = setup.run(&["startup", "--reps", "1"], Watch::Nothing)?;
        // Of the first list with all 90, which may come after one with fewer.
        times.push(tables.first()?.number("capstan", "complete ms")?);
    }
    let what = "start with 1 of 10 servers asleep: tools/list of the others, ms";
    Ok(vec![Line::value(what, median(times)).goal(Goal::AtMost(100.0))])
}

/// Memory of a session whose client has gone without ending it.
pub(crate) fn sessions(effort: Effort) -> anyhow::Result<Vec<Line>> {
    let mut figures = Vec::new();
    for _ in 0..effort.reps() {
        figures.push(kib_a_session()?);
    }
    Ok(vec![Line::value("a live session: RSS, KiB", median(figures)).goal(Goal::AtMost(8.0))])
}

fn kib_a_session() -> anyhow::Result<f64> {
    const AT_ONCE: u32 = 100;
    // Nobody ends the sessions, and one client may have 2,500 of them: a quarter of all. These are
    // 2,100, with the first round.
    const ROUNDS: u32 = 20;
    let mut setup = Setup::new();
    setup.capstan("capstan", Front::Http, &[Server::Stdio(vec![])])?;
    // The first round is not counted: it brings the memory that is used again and again.
    let concurrency = vec![AT_ONCE.to_string(); usize::try_from(ROUNDS)? + 1].join(",");
    let words = ["load", "--conc", &concurrency, "--calls", "100", "--reps", "1"];
    let Ran { tables, .. } = setup.run(&words, Watch::Nothing)?;
    let rss = "RSS MiB";
    let before = tables.first()?.number("capstan", rss)?;
    let after = tables.last()?.number("capstan", rss)?;
    Ok((after - before) * 1024.0 / f64::from(ROUNDS * AT_ONCE))
}

/// Memory at rest with one server and with fifty, in MiB.
fn idle() -> anyhow::Result<[f64; 2]> {
    const NAMES: [(&str, u32); 2] = [("one", 1), ("fifty", 50)];
    let mut setup = Setup::new();
    for (name, count) in NAMES {
        let servers: Vec<_> = (0..count).map(|_| Server::Stdio(vec![])).collect();
        setup.capstan(name, Front::Http, &servers)?;
    }
    let words = ["memory", "--calls", "10", "--conc", "1"];
    let Ran { tables, .. } = setup.run(&words, Watch::Nothing)?;
    let table = tables.first()?;
    for (name, count) in NAMES {
        let running = table.number(name, "descendants")?;
        if running < f64::from(count) {
            anyhow::bail!("only {running} of {count} servers run");
        }
    }
    Ok([table.number("one", "RSS idle")?, table.number("fifty", "RSS idle")?])
}

/// The middle one; of an even number the upper of the two.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
