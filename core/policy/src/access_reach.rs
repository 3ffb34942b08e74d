//! Tests which servers a table of grants puts out of reach.

use Strictness::{Strict, Usual};

use super::tests::{Line, dev, legacy, of_dev, ready};
use super::*;

#[test]
fn a_server_of_which_nothing_can_be_had_is_out_of_reach() {
    let reaches = |table: AccessTable, server: &str| {
        ready(table).out_of_reach(&dev(), &server.parse().unwrap()).is_none()
    };
    assert!(reaches(of_dev(&["read db tools=x"]), "db"));
    assert!(!reaches(of_dev(&["read db"]), "sentry"));
    assert!(!reaches(of_dev(&["deny read db"]), "db"));
    assert!(!reaches(of_dev(&[]), "db"));
    let closed = |lines: &[Line<'_>]| AccessTable { default: Says::Deny, ..legacy(lines) };
    assert!(reaches(closed(&[(&[], &["dev"], "x", Says::Allow)]), "db"));
    assert!(!reaches(closed(&[(&["bob"], &[], "*", Says::Allow)]), "db"));
    assert!(!reaches(closed(&[(&[], &[], "*", Says::Deny)]), "db"));
}

/// Holes 8: the default decides without a grant, and a deny of everything wins.
#[test]
fn a_server_that_is_denied_as_a_whole_is_out_of_reach_whatever_the_default_says() {
    // Grants, and whether `db` is reached with default allow and with default deny.
    let table: &[(&[&str], bool, bool)] = &[
        (&[], true, false),
        (&["deny * db"], false, false),
        (&["deny * *"], false, false),
        (&["* db", "deny * d*"], false, false),
        (&["* db", "deny read db", "deny write db"], false, false),
        (&["deny write db", "deny read *"], false, false),
        (&["deny * db tools=* resources=* prompts=*"], false, false),
        (&["read db", "deny read db"], true, false),
        (&["write db", "deny read db"], true, true),
        (&["deny read db"], true, false),
        (&["deny write db"], true, false),
        (&["deny * sentry"], true, false),
        (&["deny * db tools=*"], true, false),
        (&["deny * db resources=*"], false, false),
        (&["deny * db resources=x*"], true, false),
        (&["deny * db prompts=x"], true, false),
        (&["deny * db tools=x"], true, false),
        (&["* db", "deny * db tools=x"], true, true),
    ];
    let db: ServerName = "db".parse().unwrap();
    for strictness in [Usual, Strict] {
        for (texts, open, closed) in table {
            for (default, expected) in [(Says::Allow, open), (Says::Deny, closed)] {
                let access = ready(AccessTable { default, strictness, ..of_dev(texts) });
                let reached = access.out_of_reach(&dev(), &db).is_none();
                assert_eq!(reached, *expected, "{texts:?} {default:?} {strictness:?}");
            }
        }
    }
    let open = |texts: &[&str]| AccessTable { default: Says::Allow, ..of_dev(texts) };
    let refusal = ready(open(&["read db", "deny * db"])).out_of_reach(&dev(), &db);
    assert_eq!(refusal.unwrap().rule, "access.roles.dev[1]");
    let other = Caller::remote("someone", vec!["ops".to_owned()]);
    assert_eq!(ready(open(&["deny * db"])).out_of_reach(&other, &db), None);
    let (rules, table) = (legacy(&[(&[], &["dev"], "x", Says::Allow)]).rules, open(&["deny * db"]));
    assert_eq!(ready(AccessTable { rules, ..table }).out_of_reach(&dev(), &db), None);
}
