//! Patterns of rules with matchers over arguments.
#![no_main]

use capstan_model::Verdict;
use capstan_policy::{Arguments, Pattern};
use capstan_wire::Json;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (&str, &str, &str)| {
    let (pattern, name, arguments) = input;
    let Ok(pattern) = Pattern::parse(pattern) else { return };
    assert_eq!(Pattern::parse(pattern.as_str()).is_ok(), true);
    let names = [name.to_owned(), format!("s__{name}")];
    let arguments = Json::parse(arguments.to_owned()).ok();
    let verdicts = [Verdict::Allow, Verdict::Ask, Verdict::Deny];
    for verdict in verdicts {
        let unknown = pattern.matches(&names, Arguments::Unknown, verdict);
        let Some(arguments) = &arguments else { continue };
        let these = pattern.matches(&names, Arguments::These(arguments), verdict);
        // A list that shows a tool must not hide what a call would be allowed.
        if these && verdict != Verdict::Deny {
            assert!(unknown, "{} {verdict:?}", pattern.as_str());
        }
    }
    drop(pattern.matches_elicitation(name));
});
