//! Tables of invented tools, and properties that hold for all of them.

use proptest::prelude::*;

use super::*;

/// A definition with a description and the properties of a schema.
fn definition(description: &str, properties: &str) -> Json {
    let description = serde_json::to_string(description).unwrap();
    let schema = format!(r#"{{"type":"object","properties":{properties}}}"#);
    Json::parse(format!(r#"{{"description":{description},"inputSchema":{schema}}}"#)).unwrap()
}

fn judge(tool: &str, description: &str, properties: &str) -> Classified {
    let definition = definition(description, properties);
    EffectRules::default().classify(tool, &definition, Trust::Untrusted)
}

#[track_caller]
fn check(expected: Effect, table: &[(&str, &str, &str)]) {
    for (tool, description, properties) in table {
        let classified = judge(tool, description, properties);
        assert_eq!(classified.effect, expected, "{tool}: {description}: {classified:?}");
        assert!(!classified.reasons.is_empty(), "{tool}");
        assert_eq!(classified.confidence == 0, expected == Effect::Unknown, "{tool}");
    }
}

#[test]
fn reads_are_recognised() {
    check(
        Effect::Read,
        &[
            ("get_invoice", "Get one invoice by its number.", r#"{"number":{"type":"string"}}"#),
            ("invoices_list", "List the invoices of a customer", "{}"),
            ("crmFetchContacts", "Fetches contacts, newest first.", r#"{"limit":{}}"#),
            ("ledger-balance", "Returns the balance of an account.", "{}"),
            ("parcel-tracking", "Tool for retrieving where a parcel is.", "{}"),
            ("tide_tables", "This tool allows you to look up tides.", "{}"),
            ("note_read", "Read a note.", r#"{"method":{"enum":["get","list_links"]}}"#),
            ("run_list", "List the runs of a pipeline.", "{}"),
            ("get_merge_queue", "Show what waits to be merged.", "{}"),
            ("list_deleted_mails", "List mails that were deleted.", "{}"),
            ("release_notes", "Get the notes of a release.", "{}"),
            ("search_products", "Performs a search in the shop.", "{}"),
            ("query_prices", "Query prices. Read-only.", r#"{"sql":{"type":"string"}}"#),
            ("is_holiday", "Check whether a day is a holiday", "{}"),
            ("convert_units", "Convert between units", r#"{"value":{},"to":{}}"#),
            ("find_person", "", "{}"),
            ("vcs_grep", "Print lines matching a pattern", r#"{"pattern":{}}"#),
            ("vcs_log", "Show the log of commits", r#"{"oneline":{}}"#),
            ("page_snapshot", "Capture a snapshot of the current page", "{}"),
            ("wait_for_text", "Wait for a text to appear", "{}"),
            ("[x] get_time", "[Clock] Get the time", "{}"),
            ("get_weather", "获取城市的天气", "{}"),
            ("docs_resolve_id", "Resolves a package name to an id of the library.", "{}"),
            ("ctl_logs", "Print the logs for a container. Runs `ctl logs`.", "{}"),
            ("tide_levels", "Latest tide levels of a harbour", "{}"),
            ("harbour_meta", "Harbour meta data of a season", "{}"),
            ("uuid", "Generate a random UUID", "{}"),
            ("probe_connection", "Test the connection to the warehouse", "{}"),
            ("track_parcel", "Track a parcel", "{}"),
            ("get_delegate_note", "Get a delegate's note", "{}"),
            ("get_profiles", "Manage profiles (read-only)", "{}"),
            ("slow_queries", "Reports the slowest queries", "{}"),
            ("run_search", "Runs a search in the archive", "{}"),
            ("seller", "Obtiene la reputación de un vendedor", "{}"),
        ],
    );
}

/// C24: the output format of a program is no file.
#[test]
fn c24_an_output_that_is_a_format_does_not_make_a_write() {
    let output = |text: &str| format!(r#"{{"output":{{"type":"string","description":"{text}"}}}}"#);
    let format = output("Output format. One of: (json, yaml, go-template-file, wide).");
    let listed = r#"{"output":{"enum":["json","yaml"]}}"#;
    let text = "Display one or many resources.";
    check(Effect::Read, &[("ctl_get", text, &format), ("ctl_get", text, listed)]);
    for file in ["The file to write", "Output file", "Output format, saved next to it", "Path"] {
        check(Effect::Unknown, &[("ctl_get", text, &output(file))]);
    }
    let folder = r#"{"destination":{"description":"Folder for the result"}}"#;
    check(Effect::Unknown, &[("ctl_get", text, folder)]);
    check(
        Effect::Read,
        &[("get_flights", "Get flights", r#"{"destination":{"description":"A city"}}"#)],
    );
}

#[test]
fn verbs_that_read_elsewhere_change_some_things() {
    check(
        Effect::Write,
        &[
            ("recall_message", "Recall a message that was sent", "{}"),
            ("format_disk", "Format a disk", "{}"),
            ("convert_lead", "Convert a lead into an opportunity", "{}"),
            ("extract_archive", "Extract an archive", "{}"),
            ("tokenize_card", "Tokenize a card", "{}"),
            ("ping_user", "Ping a user", "{}"),
            ("read_aloud", "Read a text aloud", "{}"),
            ("role_of_member", "Gives a role to a member", "{}"),
            ("makers", "Provide feedback to the makers", "{}"),
            ("resolve_thread", "Resolve a thread", "{}"),
            ("print_label", "Prints a label for a parcel", "{}"),
            ("track_event", "Track an event", "{}"),
            ("api_key", "Generate a new key", "{}"),
            ("note", "查询记录，删除旧的", "{}"),
        ],
    );
    for (tool, text) in [
        ("return_book", "Return a book to the library"),
        ("take_heap_snapshot", "Capture a heap snapshot of the page"),
        ("levels", "Latest levels, deleted on the way to update them"),
    ] {
        assert_ne!(judge(tool, text, "{}").effect, Effect::Read, "{tool}");
    }
}

#[test]
fn a_read_whose_arguments_are_not_all_looked_at_is_unknown() {
    let many: Vec<String> = (0..250).map(|at| format!(r#""a{at}":{{}}"#)).collect();
    let many = format!("{{{}}}", many.join(","));
    let long = format!(r#"{{"a":{{"description":"{}"}}}}"#, "x".repeat(300 * 1024));
    let text = "Get one invoice by its number.";
    for properties in [many.as_str(), long.as_str(), "[]"] {
        check(Effect::Unknown, &[("get_invoice", text, properties)]);
    }
    for argument in ["delete_after", "removeExisting", "purge"] {
        let properties = format!(r#"{{"{argument}":{{}}}}"#);
        check(Effect::Unknown, &[("get_invoice", text, &properties)]);
    }
    check(Effect::Read, &[("get_invoice", text, r#"{"include_deleted":{},"removed":{}}"#)]);
}

#[test]
fn writes_are_recognised() {
    check(
        Effect::Write,
        &[
            ("create_invoice", "Create an invoice.", "{}"),
            ("invoice_delete", "Delete an invoice", "{}"),
            ("deletefile", "", "{}"),
            ("getOrCreateUser", "Get a user, or make one.", "{}"),
            ("fetch_and_mark", "Fetch mails", "{}"),
            ("mark_mail_read", "Mark a mail as read", "{}"),
            ("run_query", "Runs a query on the warehouse", "{}"),
            ("exec_sql", "Returns the rows of a statement", r#"{"sql":{}}"#),
            ("page_click", "Click an element of the page", "{}"),
            ("verify_heading", "Verify that a heading is shown", "{}"),
            ("tabs", "List, open, close or pick a tab", "{}"),
            ("machine_scale", "Get or update how many machines there are", "{}"),
            ("fork_project", "Fork a project", "{}"),
            ("label", "Label a photo", "{}"),
            ("vcs_commit", "Records changes for good", "{}"),
            ("vm_lifecycle", "Start, stop or restart a machine", "{}"),
            ("mailbox", "Manage a mailbox", r#"{"action":{"enum":["list","purge"]}}"#),
            ("ticket", "Works on tickets", r#"{"action":{"enum":["get","close"]}}"#),
            ("get_mail", "Gets a mail and marks it as read.", "{}"),
            ("search_replace", "Search for a text", "{}"),
            ("list_add", "Adds to a list", "{}"),
            ("check_in", "Check in a guest", "{}"),
            ("form_check", "Check a checkbox or a radio button", "{}"),
            ("box_uncheck", "", "{}"),
            ("scraper", "Scrapes a page into the knowledge base", "{}"),
            ("get_report", "Generate a report, then send it to the boss", "{}"),
            ("login", "Log in", "{}"),
            ("sync_calendar", "", "{}"),
            ("remove_user", "Read-only. Action not modify anything.", "{}"),
            ("note", "删除一条记录", "{}"),
        ],
    );
}

#[test]
fn what_is_not_clear_stays_unknown() {
    check(
        Effect::Unknown,
        &[
            ("weather_maps", "Maps of the weather", "{}"),
            ("frobnicate", "", "{}"),
            ("get_user", "Get a user. This tool also creates the user if needed.", "{}"),
            ("get_file", "Get a file", r#"{"output_path":{}}"#),
            ("get_pixels", "Get pixels", r#"{"filename":{"description":"Where to save them"}}"#),
            ("list_changes", "List changes", r#"{"action":{"enum":["create","delete"]}}"#),
            ("get_plan", "Get a plan", r#"{"dry_run":{"type":"boolean"}}"#),
            ("query", "Query the database with SQL", r#"{"q":{}}"#),
            ("read_rows", "Read rows", r#"{"sql":{}}"#),
            ("fetch", "Fetch a URL", r#"{"method":{},"body":{}}"#),
            ("download_video", "Download a video", "{}"),
            ("convert_image", "Convert an image", r#"{"path":{}}"#),
            ("show_message", "Display a text to the person at the desk", "{}"),
            ("open_interest", "Get the open interest", "{}"),
            ("get_table", "Get a table. A new one will be created if there is none.", "{}"),
            ("g\u{435}t_user", "Get a user", "{}"),
            ("get_edit_link", "Get a link", "{}"),
        ],
    );
}

#[test]
fn a_claim_to_read_counts_only_where_nothing_speaks_against_it() {
    for claim in ["Read-only.", "Action not modify anything.", "Without changing anything."] {
        for tool in ["drop_table", "send_mail", "execute"] {
            assert_eq!(judge(tool, claim, "{}").effect, Effect::Write, "{tool} {claim}");
        }
        assert_ne!(judge("gadget", claim, "{}").effect, Effect::Read, "{claim}");
    }
    let query = |text| judge("query", text, r#"{"sql":{}}"#).effect;
    assert_eq!(query("Query with SQL, read-only"), Effect::Read);
    assert_eq!(query("Query with SQL; not read-only"), Effect::Unknown);
    assert_eq!(query("Query with SQL. Off in read-only mode"), Effect::Unknown);
}

fn annotated(tool: &str, annotations: &str, trust: Trust) -> Classified {
    let own = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let rules = EffectRules::new(&own(&["get_*"]), &own(&["*_thing"])).unwrap();
    let text = format!(r#"{{"name":"{tool}","annotations":{annotations}}}"#);
    rules.classify(tool, &Json::parse(text).unwrap(), trust)
}

#[test]
fn c29_the_operator_is_believed_first_and_a_tool_in_both_lists_writes() {
    let table = [
        ("get_x", r#"{"readOnlyHint":false}"#, Trust::Trusted, Effect::Read),
        ("get_thing", "{}", Trust::Untrusted, Effect::Write),
        ("do_thing", r#"{"readOnlyHint":true}"#, Trust::Trusted, Effect::Write),
        ("get_and_delete", "{}", Trust::Untrusted, Effect::Read),
    ];
    for (tool, annotations, trust, expected) in table {
        let classified = annotated(tool, annotations, trust);
        assert_eq!(classified.effect, expected, "{tool}");
        assert_eq!((classified.source, classified.confidence), (Source::Override, 100), "{tool}");
    }
}

#[test]
fn c29_a_pattern_in_both_lists_is_refused() {
    let own = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
    let error = EffectRules::new(&own(&["a", "get_*"]), &own(&["get_*"])).unwrap_err();
    assert_eq!(error.to_string(), "`get_*` is in `effect.read` and in `effect.write`");
    assert!(EffectRules::new(&own(&["get_*"]), &own(&["get_?"])).is_ok());
}

#[track_caller]
fn check_hint(tool: &str, hints: &str, trust: Trust, expected: (Effect, Source)) {
    let classified = annotated(tool, hints, trust);
    let found = (classified.effect, classified.source);
    assert_eq!(found, expected, "{tool} {hints} {trust:?}: {classified:?}");
}

#[test]
fn only_a_trusted_server_is_believed_about_itself() {
    use Effect::{Read, Unknown, Write};
    let (reads, both) =
        (r#"{"readOnlyHint":true}"#, r#"{"readOnlyHint":true,"destructiveHint":true}"#);
    check_hint("x", reads, Trust::Trusted, (Read, Source::Annotation));
    check_hint("x", reads, Trust::Untrusted, (Unknown, Source::Fallback));
    check_hint("x", reads, Trust::Sandboxed, (Unknown, Source::Fallback));
    check_hint("create_x", reads, Trust::Untrusted, (Write, Source::Classifier));
    check_hint("list_x", reads, Trust::Untrusted, (Read, Source::Classifier));
    check_hint("x", both, Trust::Trusted, (Write, Source::Annotation));
    check_hint("x", r#"{"destructiveHint":true}"#, Trust::Trusted, (Write, Source::Annotation));
    check_hint("x", r#"{"readOnlyHint":"true"}"#, Trust::Trusted, (Unknown, Source::Fallback));
    check_hint("list_x", "null", Trust::Trusted, (Read, Source::Classifier));
}

#[test]
fn whoever_says_that_a_tool_writes_is_believed() {
    for trust in [Trust::Trusted, Trust::Untrusted, Trust::Sandboxed] {
        for hints in [r#"{"readOnlyHint":false}"#, r#"{"destructiveHint":true}"#] {
            check_hint("list_x", hints, trust, (Effect::Write, Source::Annotation));
            check_hint("x", hints, trust, (Effect::Write, Source::Annotation));
        }
    }
}

#[test]
fn annotations_that_lie_are_reported() {
    let reads = r#"{"readOnlyHint":true}"#;
    let finding = |classified: &Classified| {
        let reasons = classified.reasons.iter();
        reasons.filter(|reason| reason.starts_with("finding: ")).cloned().collect::<String>()
    };
    for trust in [Trust::Trusted, Trust::Untrusted] {
        let destroys = annotated("wipe_disk", reads, trust);
        assert_eq!(destroys.effect, Effect::Write, "{trust:?}");
        assert!(finding(&destroys).contains("`wipe`"), "{destroys:?}");
        let writes = annotated("send_mail", reads, trust);
        assert!(finding(&writes).contains("looks like a write"), "{writes:?}");
        assert_eq!(finding(&annotated("list_mails", reads, trust)), "");
    }
    // The claim of a trusted server counts, unless the name has a verb that destroys.
    check_hint("send_mail", reads, Trust::Trusted, (Effect::Read, Source::Annotation));
}

/// Words of every sense, for generated names.
fn parts() -> impl Strategy<Value = String> {
    let pool = "get list read search query show check user message file and or run open star merge \
                release is take snapshot screenshot download convert of all new reads deleted in";
    prop::sample::select(pool.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

fn names() -> impl Strategy<Value = String> {
    prop::collection::vec(parts(), 0..6).prop_map(|words| words.join("_"))
}

fn descriptions() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "",
        "Get it.",
        "Lists all of them",
        "Take a screenshot of the page",
        "Runs a search",
        "Read-only access",
        "Convert it",
        "Merge requests",
    ])
    .prop_map(str::to_owned)
}

fn changing() -> impl Strategy<Value = String> {
    let verbs = words::writing().chain(words::destroying());
    prop::sample::select(verbs.map(str::to_owned).collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn a_name_with_a_verb_that_takes_away_is_never_a_read(
        before in names(),
        after in names(),
        description in descriptions(),
        verb in prop::sample::select(words::destroying().collect::<Vec<_>>()),
        separator in prop::sample::select(vec!["_", "-", ".", " ", "/"]),
    ) {
        let tool = format!("{before}{separator}{verb}{separator}{after}");
        prop_assert_eq!(judge(&tool, &description, "{}").effect, Effect::Write);
    }

    #[test]
    fn more_verbs_of_change_never_make_a_read(
        name in names(),
        description in descriptions(),
        verb in changing(),
    ) {
        let before = judge(&name, &description, "{}").effect;
        for more in [format!("{name}_{verb}"), format!("{verb}_{name}")] {
            let after = judge(&more, &description, "{}").effect;
            prop_assert!(after != Effect::Read || before == Effect::Read, "{} is a read", more);
        }
    }

    #[test]
    fn nothing_that_a_server_writes_breaks_it(
        tool in ".{0,300}",
        description in "(.{0,200}|[a-z,./()\\[\\]\n ]{0,400})",
        key in ".{0,80}",
        value in "[ -~]{0,40}",
    ) {
        let property = serde_json::to_string(&key).unwrap();
        let value = serde_json::to_string(&value).unwrap();
        judge(&tool, &description, &format!("{{{property}:{{\"enum\":[{value},1,null]}}}}"));
        judge(&tool, &description, &format!("{{\"action\":{{\"enum\":[{value}]}}}}"));
    }
}

#[test]
fn what_is_no_definition_is_unknown_and_what_is_huge_is_cut() {
    let rules = EffectRules::default();
    for text in ["null", "[]", "1", r#"{"description":1,"inputSchema":2}"#, r#"{"annotations":[]}"#]
    {
        let definition = Json::parse(text).unwrap();
        assert_eq!(rules.of("thing", &definition, Trust::Untrusted), Effect::Unknown, "{text}");
    }
    let long = "get ".repeat(1_000_000);
    assert_eq!(judge("weather", &long, "{}").effect, Effect::Read);
    assert_eq!(judge(&"list_".repeat(1_000_000), "", "{}").effect, Effect::Unknown);
}
