//! Tables of texts, and what is shown of them.

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(redact_file("x", text, Hide::EveryValue), expected);
    assert_eq!(text.len(), expected.len());
}

#[test]
fn secrets_are_hidden_wherever_they_stand() {
    check("env = { A = \"x\\\"y\", B = 'z' }", "env = { A = \"****\", B = '*' }");
    check("[s.a.env]\nA = \"x\"\n[s.b]\nc = \"d\"", "[s.a.env]\nA = \"*\"\n[s.b]\nc = \"d\"");
    check("env.A = \"\"\"x\ny\"\"\"\nb = \"c\"", "env.A = \"\"\"*\n*\"\"\"\nb = \"c\"");
    check("s = { a = { headers = { B = \"c\" } } }", "s = { a = { headers = { B = \"*\" } } }");
    check("client_secret = \"x\"", "client_secret = \"*\"");
    check("bearer_token_env_var = \"T\"", "bearer_token_env_var = \"T\"");
    check("\"api key\" = \"x\" # c", "\"api key\" = \"*\" # c");
    check("args = [\n \"--token\",\n \"x\", \"y\" ]", "args = [\n \"--token\",\n \"*\", \"y\" ]");
    check("args = ['--api-key=x']", "args = ['***********']");
    check("url = \"https://me:pw@h\"", "url = \"***************\"");
}

#[test]
fn secrets_of_a_broken_file_are_hidden_too() {
    check("env = { A = \"x }\nb = \"c\"", "env = { A = \"* *\nb = \"c\"");
    check("env = { A = x-1.2 }", "env = { A = ***** }");
    check("a = [ \"b\"\nTOKEN = \"x\"", "a = [ \"b\"\nTOKEN = \"*\"");
    check("a = [ 1\n[s.env]\nB = \"x\"", "a = [ 1\n[s.env]\nB = \"*\"");
    check("env = {\n A = \"ü", "env = {\n A = \"**");
}

#[track_caller]
fn hides(text: &str) {
    let shown = redact_file("x", text, Hide::EveryValue);
    assert!(!shown.contains("hunter"), "{shown}");
    assert_eq!((text.len(), text.lines().count()), (shown.len(), shown.lines().count()));
}

#[test]
fn secrets_of_json_are_hidden() {
    check(r#"{"env":{"A":"ü"},"b":1}"#, r#"{"env":{"A":"**"},"b":1}"#);
    hides(r#"{"s":{"command":"/x","env":{"DB_PASSWORD":"hunter2"},"bogus":1}}"#);
    hides("{\n \"env\": {\n // }\n /* } */\n  \"A\": \"hunter2\",\n  \"B\": 1\n }\n}");
    hides("{\"env\": { /* }\n} */ \"A\": \"hunter2\"\n}}");
    hides("{\"args\": [\"src/*\"],\n\"env\": {\n\"A\": \"hunter2\"}}");
    hides("{\"env\": { \"A\": 1, /* { don't\n}} */ \"B\": \"hunter2\" }}");
    hides("glob: /*\nenv: {A: hunter2}\nenv:\n  A: hunter2");
    hides(r#"{"headers": {"Authorization": "Bearer hunter2"}}"#);
    hides(r#"{"http_headers": {"X": "a\"hunter2"}, "apiKey" : ["hunter2"]}"#);
    hides(r#"{"args": ["-y", "--token", "hunter2"], "url": "https://me:hunter2@h"}"#);
    hides("{ // \"API_KEY\": \"hunter2\"\n}");
    hides(r#"{"\u0065nv": {"A": "hunter2"}}"#);
}

#[test]
fn secrets_of_yaml_are_hidden() {
    check("envs:\n  A: x y # c\nb: c", "envs:\n  A: * * # *\nb: c");
    hides("extensions:\n  a:\n    envs:\n      A: hunter2\n      B: 'hunter2'\n    cmd: x");
    hides("- env:\n    A: {b: hunter2}\n- headers: {X: hunter2, Y: \"hunter2\"}");
    hides("password: |\n  hunter: 2\n  hunter2\nb: c");
    hides("tokens:\n- hunter2\n- b: hunter2\nargs:\n- --token\n- hunter2");
    hides(
        "env:\n  A: |\n    hunter2: x\n    y\n\n    hunter: {\n  B: >-\n   hunter2: [\n  C: hunter2",
    );
    hides("a:\n  env:\n    A: >\n      hunter: 2\n    B: hunter2\n  cmd: x");
    hides("uri: https://me:hunter2@h\n# api_key: hunter2");
}

#[test]
fn secrets_of_broken_json_and_yaml_are_hidden() {
    hides(r#"{"env": {"A": "hunter2"#);
    hides("{\"env\": {\n\"A\": \"b,\n\"C\": \"hunter2\"");
    hides("{\"a\": \"b\n\"env\": {\n\"A\": \"hunter2\"");
    hides(r#"{"DB_PASSWORD" "hunter2"}"#);
    hides(r#"{"DB_PASSWORD": hunter2"}"#);
    hides(r#"{"command": "/x, "env": {"A": "hunter2"}}"#);
    hides("env:\n  A: \"hunter2\n  B: [hunter2\nc: d");
    hides("DB_PASSWORD:hunter2\nenv: {A: hunter2");
}

#[test]
fn everything_else_is_shown() {
    for text in [
        "[servers.a]\ncommand = \"npx\" # a \"comment\"\nargs = [\"-y\", 'p', 5]\n",
        "servers = { \"My Server\" = { command = \"x\" } }",
        "[permissions]\nallow = [\"a\", { pattern = \"b\", reason = \"c\" }]\ndefault = \"ask\"",
        "a = \"\"\nb = ''''''\n\n\r\n\u{feff}",
        "= = [[ }} ]] \"",
        "{\"s\": {\"command\": \"npx\", \"args\": [\"-y\"], \"bogus\": 1}} // don't",
        "a:\n  cmd: npx # don't\n  args: [-y, p]\n  list:\n  - b\n",
        "{\"a\": \"b",
        "",
    ] {
        check(text, text);
    }
}

/// The auth of a gateway whose map of tokens has both shapes, in each syntax.
const TOKENS: [&str; 7] = [
    r#"{"serverAuth": {"bearer": {"tokens": {"hunter22": "ada", "hunter23": {"subject": "bob"}}}}}"#,
    r#"{"serverAuth": {"bearer": {"hunter22": "ada", "hunter23": {"roles": ["dev"]}}}}"#,
    r#"{"tokens": {"hunter22": null, "hunter22": "ada"}, "tokens": {"hunter23": 1}}"#,
    "tokens:\n  hunter22: ada\n  'hunter23':\n    subject: bob\nname: x",
    "bearer: {tokens: {hunter22: ada}}\nbearer_tokens:\n    ? hunter23\n    : bob",
    "[auth.bearer.tokens]\nhunter22 = \"ada\"\n\"hunter23\" = { subject = \"bob\" }\n[x]\ny = 1",
    "tokens.hunter22 = \"ada\"\n[bearer.tokens.hunter23]\nsubject = \"bob\"\n[bearer.hunter23.x]",
];

/// Holes 14: the tokens of such a map are its keys.
#[test]
fn tokens_are_hidden_where_they_are_keys() {
    for text in TOKENS {
        hides(text);
    }
    check(
        "[auth.bearer.tokens]\nhunter22 = { subject = \"bob\" }\n[x]\ny = 1",
        "[auth.bearer.tokens]\n******** = { subject = \"bob\" }\n[x]\ny = 1",
    );
}

#[test]
fn tokens_are_hidden_where_they_are_keys_of_a_broken_file() {
    for text in TOKENS {
        for broken in [" }]", "\n= [", "\n\"", "\n\t- : {"] {
            hides(&format!("{text}{broken}"));
        }
        for end in 0..text.len() {
            hides(text.get(..end).unwrap());
        }
        hides(&text.replacen(':', "", 1));
        hides(&text.replacen('"', "", 1));
        hides(&format!("# {}", text.replace('\n', "\n# ")));
    }
}

#[test]
fn what_is_said_of_a_file_repeats_none_of_its_secrets() {
    for (path, text) in [
        ("a.json", r#"{"tokens": {"hunter22": "a", "hunter22": "b"}}"#),
        ("a.yaml", "tokens:\n  hunter22: a\n  hunter22: b\n"),
        ("a.toml", "[tokens]\nhunter22 = 'a'\nhunter22 = 'b'\n"),
    ] {
        let said = "`tokens.hunter22` stands here twice";
        let mut problem = Problem::error(said).help("remove `hunter22`");
        problem.key = Some("tokens.hunter22".to_owned());
        scrub(path, text, [&mut problem]);
        assert_eq!(problem.message, "`tokens.***` stands here twice", "{path}");
        assert_eq!(problem.help.as_deref(), Some("remove `***`"), "{path}");
        assert_eq!(problem.key.as_deref(), Some("tokens.***"), "{path}");
        if let Err(problem) = Syntax::of(path, text).read(path, text) {
            assert!(!format!("{problem:?}").contains("hunter"), "{problem:?}");
        }
    }
}

#[test]
fn a_default_that_a_person_types_hidden_is_hidden() {
    hides(r#"{"inputs": [{"id": "k", "password": true, "default": "hunter22"}]}"#);
    hides(
        r#"{"user_config": {"k": {"sensitive": true, "default": "hunter22", "type": "string"}}}"#,
    );
    let plain = r#"{"inputs": [{"id": "k", "password": false, "default": "eu"}]}"#;
    check(plain, plain);
}

#[test]
fn what_only_names_a_secret_is_shown() {
    for text in [
        r#"{"env": {"A_TOKEN": "${A_TOKEN}"}, "headers": {"Authorization": "Bearer ${T}"}}"#,
        r#"{"env": {"A": "${env:A}", "B": "{env:B}", "C": "${input:c}", "D": "$D"}}"#,
        r#"{"args": ["--token=${T}", "--api-key", "${K}"], "bearer_token_env_var": "T"}"#,
        r#"{"env_keys": ["GITHUB_TOKEN"], "oauth": {"clientId": "me", "scopes": ["read"]}}"#,
        r#"{"auth": "oauth", "authorization": {"rules": [{"action": "deny", "tools": ["x"]}]}}"#,
        r#"{"serverAuth": {"providers": ["bearer"], "acl": {"roles": {"dev": [{"server": "a"}]}}}}"#,
    ] {
        check(text, text);
    }
    for text in [r#"{"env": {"A": "${A:-hunter22}"}}"#, r#"{"env": {"A": "${A}hunter22"}}"#] {
        hides(text);
    }
}

#[test]
fn a_person_who_must_know_what_a_file_does_sees_all_but_its_secrets() {
    let text = r#"{"env": {"NODE_OPTIONS": "--require x", "A_TOKEN": "hunter22", "DEBUG": 1}}"#;
    let shown = redact_file("x", text, Hide::Secrets);
    assert_eq!(shown, text.replace("hunter22", "********"));
}
