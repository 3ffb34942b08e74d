//! Many servers of which most never answer: the others are listed without them.

use crate::stage::{column, ends_with, fixture, json, run, says, with};

#[test]
fn five_of_twenty_five_servers_are_listed_and_the_rest_are_told_of() {
    let silent = (0..20).map(|number| fixture(&format!("silent{number}"), &["--silent"]));
    let good = (0..5).map(|number| fixture(&format!("good{number}"), &["--tools", "2"]));
    let world = with(&silent.chain(good).collect::<Vec<_>>().join("\n"));

    let ended = ends_with(run(&world, "tools --json"), 0);
    let mut servers = column(&json(&ended), "server");
    assert_eq!(servers.len(), 5 * 20);
    servers.dedup();
    assert_eq!(servers, ["good0", "good1", "good2", "good3", "good4"]);
    says(&ended.stderr, "no answer yet from `silent0`, `silent1`");

    let ended = ends_with(run(&world, "list --wait 1s"), 0);
    assert_eq!(ended.stdout.matches("connecting").count(), 20, "{}", ended.stdout);
    assert_eq!(ended.stderr.matches("it has not answered yet").count(), 20);
    assert_eq!(ended.stdout.matches("● good").count(), 5);
}
