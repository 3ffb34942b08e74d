//! From the text of files to a configuration.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::time::Duration;

use capstan_config::NativeFiles;
use capstan_config::{
    IdlePolicy, Kind, Loaded, Problem, Program, Protocol, Sandbox, Scope, Server, Severity,
    SourceFile, Surroundings, ToolList, load,
};
use capstan_model::{Naming, ServerName, Trust, Verdict};

/// The environment of these tests.
fn variable(name: &str) -> Option<String> {
    match name {
        "TOKEN" => Some("s3cret".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

fn file(scope: Scope, path: &str, text: &str) -> SourceFile {
    SourceFile::new(path, scope, text)
}

fn load_files(files: &[SourceFile]) -> Loaded {
    load(files, &Surroundings { variable: &variable, project_dir: "/project" }, &NativeFiles)
}

fn load_text(text: &str) -> Loaded {
    load_files(&[file(Scope::User, "config.toml", text)])
}

/// The only server of a text that loads without a problem.
#[track_caller]
fn server(text: &str) -> Server {
    let loaded = load_text(text);
    assert_eq!(loaded.problems, []);
    loaded.config.servers.into_values().next().unwrap().status.unwrap()
}

#[track_caller]
fn program(text: &str) -> Program {
    let program = match server(text).kind {
        Kind::Stdio(program) => Some(program),
        Kind::Http(_) | Kind::Sse(_) | Kind::Cli(_) | Kind::OpenApi(_) => None,
    };
    program.unwrap()
}

/// The errors of a text, which must not leave the server usable.
#[track_caller]
fn refused(text: &str) -> Vec<Problem> {
    let loaded = load_text(text);
    let errors: Vec<Problem> =
        loaded.problems.into_iter().filter(|problem| problem.severity == Severity::Error).collect();
    assert!(!errors.is_empty(), "{text} was accepted");
    for entry in loaded.config.servers.values() {
        assert!(entry.status.is_err() || errors.iter().any(|e| e.server.is_none()), "{text}");
    }
    errors
}

#[test]
fn a_server_without_further_keys_has_the_documented_defaults() {
    let server = server("[servers.x]\ncommand = \"run\"");
    assert_eq!(server.timeout, Duration::from_mins(1));
    assert_eq!(server.startup_timeout, Duration::from_secs(30));
    assert_eq!((server.trust, server.protocol), (Trust::Untrusted, Protocol::Auto));
    assert_eq!((server.expose, server.elicitation), (None, None));
    assert!(server.enabled && !server.required && !server.always_load);
}

#[test]
fn c04_transport_is_another_name_of_type_and_defaults_and_cwd_are_kept() {
    let program = program(
        "[servers.x]\ntransport = \"stdio\"\ncommand = \"run\"\nargs = [\"${X:-d}\"]\ncwd = \"sub\"",
    );
    assert_eq!((program.args, program.cwd), (vec!["d".to_owned()], Some("sub".to_owned())));
    refused("[servers.x]\ntransport = \"stdio\"\ntype = \"stdio\"\ncommand = \"run\"");
}

#[test]
fn c05_disabled_is_the_opposite_of_enabled_and_not_both() {
    for text in ["disabled = true", "enabled = false"] {
        let loaded = load_text(&format!("[servers.x]\ncommand = \"run\"\n{text}"));
        let entry = loaded.config.servers.values().next().unwrap();
        assert!(!entry.enabled && entry.usable().is_none(), "{text}");
    }
    refused("[servers.x]\ncommand = \"run\"\nenabled = true\ndisabled = false");
}

#[test]
fn c06_the_project_folder_is_known_in_every_string_without_being_set() {
    let program = program(
        "[servers.x]
        command = \"${CLAUDE_PROJECT_DIR}/bin/s\"
        args = [\"${CAPSTAN_PROJECT_DIR}\"]
        env = { DIR = \"${CLAUDE_PROJECT_DIR}\" }
        cwd = \"${CAPSTAN_PROJECT_DIR}/sub\"",
    );
    assert_eq!(program.command, "/project/bin/s");
    assert_eq!(program.args, ["/project"]);
    assert_eq!(program.env["DIR"].reveal(), "/project");
    assert_eq!(program.cwd.as_deref(), Some("/project/sub"));
}

#[test]
fn c11_the_rules_of_a_server_stand_in_their_lists() {
    let server = server(
        "[servers.linear]
        command = \"run\"
        [servers.linear.permissions]
        allow = [\"read_*\", \"list_*\"]
        deny = [\"delete_*\"]
        ask = [\"create_*\", \"update_*\"]",
    );
    let patterns = |verdict| {
        let list = server.permissions.list(verdict).iter();
        list.map(|rule| rule.pattern.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(patterns(Verdict::Allow), ["read_*", "list_*"]);
    assert_eq!(patterns(Verdict::Ask), ["create_*", "update_*"]);
    assert_eq!(patterns(Verdict::Deny), ["delete_*"]);
}

#[test]
fn the_kind_follows_from_the_keys() {
    for (text, kind) in [
        ("command = \"run\"", "stdio"),
        ("command = \"run\"\ncli = true", "cli"),
        ("command = \"run\"\ntype = \"cli\"\ncli_only = [\"get\"]", "cli"),
        ("url = \"https://h/mcp\"", "http"),
        ("url = \"https://h/sse\"\ntype = \"sse\"", "sse"),
        ("openapi = \"api.json\"", "openapi"),
        ("openapi = { document = \"api.json\", tags = [\"a\"] }", "openapi"),
    ] {
        assert_eq!(server(&format!("[servers.x]\n{text}")).kind.as_str(), kind, "{text}");
    }
}

#[test]
fn an_entry_that_contradicts_itself_is_refused() {
    for text in [
        "",
        "command = \"run\"\nurl = \"https://h\"",
        "command = \"\"",
        "command = \" \"",
        "url = \"example.com\"",
        "url = \"https://\"",
        "type = \"http\"\ncommand = \"run\"",
        "type = \"stdio\"\nurl = \"https://h\"",
        "type = \"ws\"\nurl = \"https://h\"",
        "type = \"stdio\"\ncommand = \"run\"\ncli = true",
        "url = \"https://h\"\nargs = [\"a\"]",
        "command = \"run\"\nheaders = { A = \"b\" }",
        "command = \"run\"\ncli_only = [\"get\"]",
        "command = \"run\"\nargs = \"a b\"",
        "openapi = \"a\"\nurl = \"https://h\"",
        "openapi = 1",
        "openapi = {}",
        "openapi = { document = \"a\", base_url = \"nowhere\" }",
        "openapi = { document = \"a\", only = \"x\" }",
        "openapi = { document = \"a\", auth = \"x\" }",
        "openapi = { document = \"a\", auth = { k = \"x\" } }",
        "openapi = { document = \"a\", auth = { k = {} } }",
        "openapi = { document = \"a\", auth = { k = { token = \" \" } } }",
        "openapi = { document = \"a\", auth = { k = { username = \"x\" } } }",
        "openapi = { document = \"a\", auth = { k = { token = \"x\", scopes = [] } } }",
        "openapi = { document = \"a\", auth = { k = { token = \"x\", password = \"y\" } } }",
        "openapi = { document = \"a\", auth = { k = { token = \"x\", secret = \"y\" } } }",
        "openapi = { document = \"a\", auth = { k = { client_id = \"x\" } } }",
        "openapi = { document = \"a\", auth = { k = { client_id = \"x\", client_secret = \"y\", token_url = \"z\" } } }",
        "openapi = { document = \"a\", include = [\"x\"] }",
        "openapi = \"a\"\nargs = [\"x\"]",
        "command = \"run\"\ntools = true",
        "command = \"run\"\ntools = { a = \"b\" }",
        "command = \"run\"\ntools = { a = { hide = true } }",
        "command = \"run\"\ntools = { a = { name = \"b c\" } }",
        "command = \"run\"\ntools = { a = { pin = 1 } }",
        "command = \"run\"\ntools = { a = { pin = { x = 1 }, default = { x = 2 } } }",
        "command = \"run\"\nargs = [1]",
        "command = \"run\"\nenv = { PORT = 80 }",
        "command = \"run\"\nenv = { \"A=B\" = \"c\" }",
        "command = \"run\"\ntimeout = 30",
        "command = \"run\"\ntimeout = \"0s\"",
        "command = \"run\"\nmin_idle_timeout = \"10m\"",
        "command = \"run\"\nexpose = [\"[\"]",
        "command = \"run\"\neffect = { read = [\"a\"], write = [\"a\"] }",
        "command = \"run\"\ntrust = true",
        "command = \"run\"\nprotocol = \"new\"",
        "command = \"run\"\npermissions = { deny = [\"Elicit(x)\"] }",
        "url = \"https://h\"\nheaders = { \"Bad Name\" = \"x\" }",
        "url = \"https://h\"\nheaders = { A = \"x\\r\\nB: y\" }",
    ] {
        refused(&format!("[servers.x]\n{text}"));
    }
    refused("servers = 1");
    refused("[servers]\nx = \"run\"");
    refused("[servers.\"\"]\ncommand = \"run\"");
}

#[test]
fn variables_that_hijack_a_process_refuse_the_server() {
    for name in ["LD_PRELOAD", "ld_library_path", "NODE_OPTIONS", "BASH_FUNC_x%%", "ENV"] {
        let text = format!("[servers.x]\ncommand = \"run\"\nenv = {{ \"{name}\" = \"x\" }}");
        assert!(refused(&text)[0].message.contains(name), "{name}");
        refused(&format!("[servers.x]\ncommand = \"run\"\nenv_passthrough = [\"{name}\"]"));
    }
    let program = program("[servers.x]\ncommand = \"run\"\nenv = { NODE_ENV = \"test\" }");
    assert_eq!(program.env["NODE_ENV"].reveal(), "test");
}

#[test]
fn a_restriction_that_is_not_in_force_refuses_the_server_or_everything() {
    for text in ["[gateway.auth]\nproviders = [\"bearer\"]", "[screen]\nmask = true"] {
        assert_eq!(load_text(text).fatal().count(), 1, "{text}");
    }
}

/// The sandbox of a program with these keys.
fn sandbox(keys: &str) -> Option<Sandbox> {
    server(&format!("[servers.x]\ncommand = \"run\"\n{keys}")).sandbox
}

#[test]
fn a_sandbox_is_read_and_on_by_default_for_sandboxed_trust() {
    assert_eq!(sandbox(""), None);
    assert_eq!(sandbox("trust = \"trusted\""), None);
    assert_eq!(sandbox("sandbox = true"), Some(Sandbox::on()));
    assert_eq!(sandbox("trust = \"sandboxed\"\nexpose = []"), Some(Sandbox::on()));
    let text =
        "[servers.x]\ncommand = \"run\"\ntrust = \"sandboxed\"\nexpose = []\nsandbox = false";
    let off = load_text(text);
    assert!(off.config.servers[0].status.as_ref().unwrap().confinement().is_none());
    assert!(off.problems[0].message.contains("is not confined"), "{:?}", off.problems);
    let table = "sandbox = { read = [\"~/a\"], write = [\"/b\"], net = [\"H.test\", \"*.i.test:1\"], \
                 processes = 20, memory = \"1GiB\", open_files = 100, file_size = \"1MiB\" }";
    let read = sandbox(table).unwrap();
    assert_eq!((read.read, read.write), (vec!["~/a".to_owned()], vec!["/b".to_owned()]));
    let hosts: Vec<String> = read.net.iter().map(ToString::to_string).collect();
    assert_eq!(hosts, ["h.test:443", "*.i.test:1"]);
    let limits = (read.processes, read.memory, read.open_files, read.file_size);
    assert_eq!(limits, (Some(20), Some(1 << 30), Some(100), Some(1 << 20)));
    for bad in [
        "sandbox = \"on\"",
        "sandbox = { network = false }",
        "sandbox = { read = \"/a\" }",
        "sandbox = { net = [\"*\"] }",
        "sandbox = { net = true }",
        "sandbox = { processes = 1 }",
        "sandbox = { open_files = 3 }",
        "sandbox = { memory = \"1KiB\" }",
        "sandbox = { enabled = \"yes\" }",
    ] {
        refused(&format!("[servers.x]\ncommand = \"run\"\n{bad}"));
    }
    let way = "sandbox = { net = [\"h.test\"] }\nnetworks = [\"10.0.0.0/8\"]";
    assert!(sandbox(way).is_some());
    for no_way in ["", "sandbox = true\n", "sandbox = { enabled = false, net = [\"h\"] }\n"] {
        refused(&format!("[servers.x]\ncommand = \"run\"\n{no_way}networks = [\"10.0.0.0/8\"]"));
    }
    let errors = refused("[servers.x]\nurl = \"https://h\"\nsandbox = true");
    assert!(errors[0].message.contains("sandbox"), "{errors:?}");
}

#[test]
fn the_tools_that_a_server_may_have_are_read() {
    let x = |key: &str| server(&format!("[servers.x]\nurl = \"https://h\"\n{key}"));
    assert_eq!(x("").tool_list, ToolList::default());
    let some = ToolList { expected: Some(vec!["a".to_owned()]), locked: true };
    assert_eq!(x("expected_tools = [\"a\"]\nlock_tool_list = true").tool_list, some);
    assert_eq!(x("expected_tools = []").tool_list.expected, Some(Vec::new()));
    for bad in ["expected_tools = \"a\"", "expected_tools = [1]", "lock_tool_list = \"yes\""] {
        refused(&format!("[servers.x]\nurl = \"https://h\"\n{bad}"));
    }
}

#[test]
fn names_are_prefixed_unless_a_server_says_otherwise() {
    let naming = |key: &str| server(&format!("[servers.x]\nurl = \"https://h\"\n{key}")).naming;
    assert_eq!(naming(""), Naming::Prefixed);
    for (word, expected) in
        [("prefixed", Naming::Prefixed), ("mcp", Naming::Mcp), ("bare", Naming::Bare)]
    {
        assert_eq!(naming(&format!("naming = \"{word}\"")), expected);
    }
    for bad in ["naming = \"Bare\"", "naming = \"\"", "naming = true", "naming = [\"bare\"]"] {
        refused(&format!("[servers.x]\nurl = \"https://h\"\n{bad}"));
    }
    refused("naming = \"bare\"");
}

#[test]
fn keys_that_ask_for_nothing_are_accepted() {
    assert_eq!(sandbox("sandbox = false").map(|sandbox| sandbox.enabled), Some(false));
    assert_eq!(load_text("[tools.authorization]\nenabled = false").problems, []);
}

#[test]
fn keys_of_the_life_cycle_are_read_and_checked() {
    for word in ["auto", "eager", "on-list", "lazy"] {
        let text = format!("[servers.x]\ncommand = \"run\"\nstart = \"{word}\"");
        assert_eq!(server(&text).start.as_str(), word);
    }
    let idle = server("[servers.x]\ncommand = \"run\"\nidle_timeout = \"never\"").idle;
    assert_eq!(idle.policy, IdlePolicy::Never);
    refused("[servers.x]\ncommand = \"run\"\nidle_timeout = \"sometimes\"");
    refused("[servers.x]\ncommand = \"run\"\nstart = \"on_list\"");
}

#[test]
fn an_unset_variable_fails_its_server_and_no_other() {
    let loaded = load_text(
        "[servers.a]\nurl = \"https://${HOST}/mcp\"\n[servers.b]\ncommand = \"run\"\nargs = [\"${TOKEN}\"]",
    );
    let [problem] = loaded.problems.as_slice() else { panic!("{:?}", loaded.problems) };
    assert!(problem.message.contains("`HOST`") && problem.message.contains("`servers.a.url`"));
    assert_eq!(problem.place.as_ref().map(|p| (p.file.as_str(), p.line)), Some(("config.toml", 2)));
    let usable =
        |name: &str| loaded.config.servers[&name.parse::<ServerName>().unwrap()].usable().is_some();
    assert_eq!((usable("a"), usable("b")), (false, true));
    assert_eq!(loaded.fatal().count(), 0);
}

#[test]
fn an_unset_variable_of_a_server_that_is_off_is_only_a_warning() {
    let loaded = load_text("[servers.a]\ncommand = \"${NONE}\"\nenabled = false");
    assert_eq!(loaded.problems.iter().map(|p| p.severity).collect::<Vec<_>>(), [Severity::Warning]);
}

#[test]
fn missing_env_empty_relaxes_with_a_warning_and_only_in_its_own_file() {
    let relaxed =
        "[mcp]\nmissing_env = \"empty\"\n[servers.a]\ncommand = \"run\"\nargs = [\"${NONE}\"]";
    let strict = "[servers.b]\ncommand = \"run\"\nargs = [\"${NONE}\"]";
    let loaded = load_files(&[file(Scope::User, "a", relaxed), file(Scope::Flag, "b", strict)]);
    let usable =
        |name: &str| loaded.config.servers[&name.parse::<ServerName>().unwrap()].usable().is_some();
    assert_eq!((usable("a"), usable("b")), (true, false));
    assert_eq!(loaded.problems.len(), 2);
}

#[test]
fn two_names_with_one_slug_are_an_error_and_command_words_a_warning() {
    let loaded =
        load_text("[servers.\"My Server\"]\ncommand = \"a\"\n[servers.my-server]\ncommand = \"b\"");
    assert_eq!(loaded.config.servers.len(), 1);
    assert_eq!(loaded.problems.iter().map(|p| p.severity).collect::<Vec<_>>(), [Severity::Error]);
    let loaded = load_text("[servers.list]\ncommand = \"a\"");
    assert_eq!(loaded.problems.iter().map(|p| p.severity).collect::<Vec<_>>(), [Severity::Warning]);
    assert!(loaded.config.servers.values().all(|entry| entry.usable().is_some()));
}

#[test]
fn limits_of_the_environment_hold_for_servers_that_set_none() {
    let text = "[servers.a]\ncommand = \"run\"\n[servers.b]\ncommand = \"run\"\ntimeout = \"5s\"";
    let variable = |name: &str| (name == "MCP_TOOL_TIMEOUT").then(|| "2000".to_owned());
    let files = [file(Scope::User, "f", text)];
    let loaded = load(&files, &Surroundings { variable: &variable, project_dir: "" }, &NativeFiles);
    let timeouts: Vec<u64> = loaded
        .config
        .servers
        .values()
        .map(|entry| entry.status.as_ref().unwrap().timeout.as_secs())
        .collect();
    assert_eq!(timeouts, [2, 5]);
}

#[test]
fn no_secret_is_in_the_debug_output() {
    let text = "[servers.a]\ncommand = \"run\"\nargs = [\"${TOKEN}\"]\nenv = { A = \"${TOKEN}\" }\n[servers.b]\nurl = \"https://u:s3cret@h\"\nheaders = { A = \"${TOKEN}\" }";
    let loaded = load_text(text);
    assert_eq!(loaded.problems, []);
    assert!(!format!("{loaded:?}").contains("s3cret"), "{loaded:?}");
}

#[test]
fn an_openapi_document_is_read_alone_or_with_more() {
    let openapi = |text: &str| match server(&format!("[servers.x]\n{text}")).kind {
        Kind::OpenApi(openapi) => openapi,
        Kind::Stdio(_) | Kind::Http(_) | Kind::Sse(_) | Kind::Cli(_) => panic!("{text}"),
    };
    let alone = openapi("openapi = \"api.json\"\nheaders = { X-Key = \"k\" }");
    assert_eq!((alone.document.as_str(), alone.headers.len()), ("api.json", 1));
    assert_eq!((alone.base_url, alone.tags, alone.only), (None, None, None));
    let more = openapi(
        "[servers.x.openapi]\ndocument = \"https://h/api\"\nbase_url = \"https://h/v1\"\n\
         tags = [\"a\"]\nonly = [\"GET /pets/{id}\"]\nexcept = [\"delete*\"]",
    );
    assert_eq!(more.base_url.as_deref(), Some("https://h/v1"));
    assert_eq!(more.tags.unwrap(), ["a"]);
    assert_eq!(
        (more.only.unwrap(), more.except),
        (vec!["GET /pets/{id}".to_owned()], vec!["delete*".to_owned()])
    );
    let auth = openapi(
        "[servers.x.openapi]\ndocument = \"a\"\n[servers.x.openapi.auth]\nkey = { token = \"${TOKEN}\" }\n\
         name = { username = \"u\", password = \"p\" }\n[servers.x.openapi.auth.login]\n\
         client_id = \"i\"\nclient_secret = \"${TOKEN}\"\nscopes = [\"read\"]",
    );
    let (token, shown) = (auth.auth["key"].secret().reveal(), format!("{auth:?}"));
    assert_eq!((auth.auth.len(), token.as_str()), (3, "s3cret"));
    assert!(shown.contains("read") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn overrides_of_tools_are_read_for_every_kind() {
    let x = server(
        "[servers.x]\ncommand = \"run\"\n[servers.x.tools.list_issues]\nname = \"issues\"\n\
         title = \"Issues\"\ndescription = \"All.\"\ndefault = { limit = 20 }\n\
         pin = { team = \"core\", deep = { a = [1, true] } }\nhide_parameters = [\"cursor\"]\n\
         [servers.x.tools.drop]\nhidden = true",
    );
    let issues = &x.tools["list_issues"];
    assert_eq!(issues.name.as_deref(), Some("issues"));
    assert_eq!(issues.default["limit"], 20);
    assert_eq!(issues.pin["deep"]["a"][1], true);
    assert_eq!(issues.hide_parameters, ["cursor"]);
    assert!(!issues.hidden && x.tools["drop"].hidden);
}
