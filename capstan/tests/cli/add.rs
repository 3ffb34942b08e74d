//! `capstan add`: every way to type it, and what lands in which file.

use capstan_testkit::World;

use crate::stage::{
    column, ends_with, failure, json, ok_json, quoted, read, run, says, user_config, with_project,
};

/// Runs `add` outside a project and gives back what the user's file says then.
#[track_caller]
fn added(words: &[&str]) -> String {
    let world = World::new();
    ends_with(world.capstan(words).run(), 0);
    user_config(&world)
}

#[track_caller]
fn check(words: &[&str], expected: &str) {
    assert_eq!(added(words), expected);
}

/// Runs `add` and gives back the message of its refusal; nothing may have been written.
#[track_caller]
fn refused(words: &[&str]) -> (String, String) {
    let world = World::new();
    let words = ["--json"].iter().chain(words);
    let ended = ends_with(world.capstan(words).run(), 2);
    let (code, message, hint) = failure(&ended);
    assert_eq!(code, "invalid_input");
    assert!(!world.config().join("capstan/config.toml").exists());
    (message, hint)
}

#[test]
fn c53_add_takes_the_words_after_the_double_dash() {
    check(
        &["add", "my-server", "--", "npx", "-y", "@example/mcp-server"],
        "[servers.my-server]\ncommand = \"npx\"\nargs = [\"-y\", \"@example/mcp-server\"]\n",
    );
}

#[test]
fn c53_add_says_which_file_it_wrote() {
    let world = World::new();
    let ended = ends_with(run(&world, "add my-server -- npx -y @example/mcp-server"), 0);
    let path = world.config().join("capstan/config.toml");
    says(&ended.stderr, &format!("added `my-server` to {} (user)", path.display()));
    assert_eq!(ended.stdout, "");

    for (words, name) in [
        ("add --json another npx", "another"),
        ("add third https://h/mcp --timeout 5s --json", "third"),
    ] {
        let told = json(&ends_with(run(&world, words), 0));
        assert_eq!(told, serde_json::json!({ "added": name, "file": path }));
    }
}

#[test]
fn c68_variables_are_set_and_every_word_after_the_command_is_the_servers() {
    let words = "add -e API_KEY=123 -e DEBUG=true my-stdio-server /path/to/server arg1 arg2 arg3";
    let words: Vec<&str> = words.split(' ').collect();
    check(
        &words,
        "[servers.my-stdio-server]\ncommand = \"/path/to/server\"\n\
         args = [\"arg1\", \"arg2\", \"arg3\"]\nenv = { API_KEY = \"123\", DEBUG = \"true\" }\n",
    );
}

#[test]
fn c69_the_first_double_dash_is_dropped_wherever_it_stands() {
    check(
        &["add", "python-server", "python", "server.py", "--", "--server-arg", "my-value"],
        "[servers.python-server]\ncommand = \"python\"\n\
         args = [\"server.py\", \"--server-arg\", \"my-value\"]\n",
    );
    check(
        &["add", "s", "sh", "-c", "x", "--", "a", "--", "b"],
        "[servers.s]\ncommand = \"sh\"\nargs = [\"-c\", \"x\", \"a\", \"--\", \"b\"]\n",
    );
}

#[test]
fn c69_options_that_look_like_ours_belong_to_the_server_after_its_command() {
    check(
        &["add", "s", "server", "-e", "A=b", "--timeout", "5", "--json", "-s", "user"],
        "[servers.s]\ncommand = \"server\"\n\
         args = [\"-e\", \"A=b\", \"--timeout\", \"5\", \"--json\", \"-s\", \"user\"]\n",
    );
}

#[test]
fn c70_addresses_keep_their_slash_and_headers_are_read() {
    let api = "https://api.example.com/mcp/";
    check(
        &["add", "--transport", "http", "http-server", api],
        &format!("[servers.http-server]\nurl = \"{api}\"\n"),
    );
    check(
        &["add", "--transport", "http", "s", api, "--header", "Authorization: Bearer abc123"],
        &format!(
            "[servers.s]\nurl = \"{api}\"\nheaders = {{ Authorization = \"Bearer abc123\" }}\n"
        ),
    );
    check(
        &["add", "--transport", "sse", "sse-server", "https://api.example.com/sse/"],
        "[servers.sse-server]\ntype = \"sse\"\nurl = \"https://api.example.com/sse/\"\n",
    );
    check(
        &["add", "-t", "sse", "-H", "X-Key:a:b", "-H", "Y: c", "s", "https://h/sse"],
        "[servers.s]\ntype = \"sse\"\nurl = \"https://h/sse\"\n\
         headers = { X-Key = \"a:b\", Y = \"c\" }\n",
    );
}

#[test]
fn c70_an_address_needs_no_transport_and_options_may_follow_it() {
    check(
        &[
            "add",
            "docs",
            "https://h/mcp",
            "-H",
            "A: b",
            "--timeout",
            "1500",
            "--description",
            "Our docs",
            "--trust",
            "--exclude-tools=x,y",
        ],
        "[servers.docs]\nurl = \"https://h/mcp\"\nheaders = { A = \"b\" }\n\
         description = \"Our docs\"\ntimeout = \"1s 500ms\"\nhide = [\"x\", \"y\"]\n\
         permissions = { allow = [\"*\"] }\n",
    );
}

#[test]
fn c71_every_flag_lands_in_the_entry() {
    check(
        &[
            "add",
            "--scope",
            "user",
            "--transport",
            "stdio",
            "--env",
            "QUERY=a=b",
            "--env",
            "EMPTY=",
            "--timeout",
            "30s",
            "--trust",
            "--description",
            "It says \"hi\"",
            "--include-tools",
            "read_*,list_issues",
            "--exclude-tools",
            "read_secret",
            "my-server",
            "npx",
            "-y",
            "p",
        ],
        "[servers.my-server]\ncommand = \"npx\"\nargs = [\"-y\", \"p\"]\n\
         env = { QUERY = \"a=b\", EMPTY = \"\" }\ndescription = 'It says \"hi\"'\n\
         timeout = \"30s\"\nexpose = [\"read_*\", \"list_issues\"]\nhide = [\"read_secret\"]\n\
         permissions = { allow = [\"*\"] }\n",
    );
}

#[test]
fn c71_without_a_scope_a_project_gets_it_and_outside_one_the_user() {
    let world = with_project();
    let told = json(&ends_with(run(&world, "add --json here npx"), 0));
    let path = world.project().join(".capstan/config.toml");
    assert_eq!(told["file"], path.to_str().unwrap());
    assert_eq!(read(&path), "[servers.here]\ncommand = \"npx\"\n");

    let below = world.project().join("deep/below");
    std::fs::create_dir_all(&below).unwrap();
    ends_with(world.capstan(["add", "deep", "npx"]).within(&below).run(), 0);
    says(&read(&path), "[servers.deep]");

    let home = world.home().to_owned();
    ends_with(world.capstan(["add", "mine", "npx"]).within(home).run(), 0);
    assert_eq!(user_config(&world), "[servers.mine]\ncommand = \"npx\"\n");
}

#[test]
fn c71_a_scope_that_is_given_decides() {
    let world = with_project();
    let ended = ends_with(run(&world, "add -s user mine npx"), 0);
    says(&ended.stderr, "(user)");
    assert_eq!(user_config(&world), "[servers.mine]\ncommand = \"npx\"\n");
    assert!(!world.project().join(".capstan").exists());

    let world = World::new();
    let ended = ends_with(run(&world, "add -s project ours npx"), 0);
    says(&ended.stderr, "(project)");
    let path = world.project().join(".capstan/config.toml");
    assert_eq!(read(path), "[servers.ours]\ncommand = \"npx\"\n");
}

#[test]
fn mcp_add_is_an_alias() {
    check(
        &["mcp", "add", "s", "--", "npx", "-y", "p"],
        "[servers.s]\ncommand = \"npx\"\nargs = [\"-y\", \"p\"]\n",
    );
}

#[test]
fn a_display_name_is_kept_and_told_with_its_slug() {
    let world = World::new();
    let ended = ends_with(world.capstan(["add", "My Server", "npx"]).run(), 0);
    says(&ended.stderr, "`capstan tools my-server`");
    assert_eq!(user_config(&world), "[servers.\"My Server\"]\ncommand = \"npx\"\n");
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    for (words, message) in [
        (&["add", "s", "https://h/mcp", "-H", "no colon"][..], "not written as 'KEY: VALUE'"),
        (&["add", "-H", ": empty", "s", "https://h/mcp"], "not written as 'KEY: VALUE'"),
        (&["add", "-H", "A: b", "s", "npx"], "`-H` sets headers of a URL"),
        (&["add", "-e", "A=b", "s", "https://h/mcp"], "`-e` sets variables of a command"),
        (&["add", "-e", "AB", "s", "npx"], "not written as KEY=VALUE"),
        (&["add", "-e", "=b", "s", "npx"], "not written as KEY=VALUE"),
        (&["add", "--timeout", "soon", "s", "npx"], "`soon` is not a duration"),
        (&["add", "s", "https://h/mcp", "word"], "after the URL"),
        (&["add", "s", "https://h/mcp", "--tiemout", "5"], "after the URL"),
        (
            &["add", "s", "https://h/mcp", "-t", "stdio"],
            "the transport of a URL is `http` or `sse`",
        ),
        (&["add", " ", "npx"], "a server needs a name"),
        (&["add", "-t", "http", "s", "not-a-url"], "would be refused"),
        (&["add", "--include-tools", "[", "s", "npx"], "would be refused"),
        (&["add", "-e", "LD_PRELOAD=/x.so", "s", "npx"], "can make the program run something else"),
        (&["add", "-e", "NODE_OPTIONS=-r x", "s", "npx"], "can make the program run something"),
        (&["add", "-t", "carrier", "s", "npx"], "carrier"),
        (&["add", "s"], "required"),
    ] {
        let (said, _) = refused(words);
        assert!(said.contains(message), "{words:?}: {said}");
    }
}

#[test]
fn a_secret_that_is_refused_is_not_repeated() {
    for words in [
        ["add", "s", "https://h/mcp", "-H", "hunter2-canary"],
        ["add", "-e", "hunter2-canary", "s", "npx"],
    ] {
        let ended = ends_with(World::new().capstan(words).run(), 2);
        assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
    }
}

#[test]
fn a_name_that_is_taken_is_refused_with_the_way_out() {
    let world = World::new();
    ends_with(world.capstan(["add", "My Server", "npx"]).run(), 0);
    let before = user_config(&world);
    for name in ["My Server", "my-server", "MY-SERVER"] {
        let ended = ends_with(world.capstan(["add", name, "uvx", "--json"]).run(), 2);
        assert_eq!(ended.stdout, "", "after the command `--json` is the server's");
        let ended = ends_with(world.capstan(["--json", "add", name, "uvx"]).run(), 2);
        let (_, message, hint) = failure(&ended);
        says(&message, "a server named `My Server` is already in this file");
        says(&hint, "`--force` replaces it; `capstan edit my-server` changes it");
    }
    assert_eq!(user_config(&world), before);
}

#[test]
fn a_file_that_is_broken_is_not_touched() {
    let world = World::new();
    let path = world.write_user_config("[servers.a\ncommand = \"x\"\n");
    let ended = ends_with(world.capstan(["--json", "add", "b", "npx"]).run(), 3);
    assert_eq!(json(&ended)["error"]["code"], "invalid_config");
    says(&failure(&ended).1, "line 1");
    assert_eq!(read(path), "[servers.a\ncommand = \"x\"\n");
}

#[test]
fn an_option_of_ours_behind_the_command_is_the_servers_and_we_say_so() {
    for (words, shown) in [
        ("add s npx -y p -e KEY=hunter2", "`-e KEY=…` follows the command"),
        ("add s npx -y p --env KEY=hunter2", "`--env KEY=…`"),
        ("add s -- python s.py -s user", "`-s`"),
        ("add s python s.py --trust", "`--trust`"),
    ] {
        let world = World::new();
        let ended = ends_with(run(&world, words), 0);
        says(&ended.stderr, shown);
        says(&ended.stderr, "before the server's name");
        assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
        // It still is the server's.
        says(&user_config(&world), words.rsplit(' ').next().unwrap());
    }
    for words in [
        "add -e KEY=v s npx -y p",
        "add s docker run -e KEY=v image",
        "add s -- /usr/bin/podman run -e KEY=v image",
        "add s python s.py -e KEY --timeout 5 -s all",
        "add s https://example.com/mcp -H X:y",
    ] {
        let ended = ends_with(run(&World::new(), words), 0);
        let says_so = ended.stderr.contains("before the server's name");
        assert!(!says_so, "{words}: {}", ended.stderr);
    }
}

#[test]
fn an_openapi_document_is_found_from_the_file_that_names_it() {
    let world = World::new();
    let document = world.write("project/apis/pets.yaml", "openapi: 3.1.0\n");
    for words in ["add pets --openapi apis/pets.yaml", "add --openapi apis/pets.yaml pets --force"]
    {
        ends_with(run(&world, words), 0);
        let expected =
            format!("[servers.pets]\nopenapi = {}\n", quoted(document.to_str().unwrap()));
        assert_eq!(user_config(&world), expected);
    }
    let world = with_project();
    world.write("project/apis/pets.yaml", "openapi: 3.1.0\n");
    ends_with(run(&world, "add pets --openapi apis/pets.yaml -H X-Team:a"), 0);
    assert_eq!(
        read(world.project().join(".capstan/config.toml")),
        "[servers.pets]\nopenapi = \"../apis/pets.yaml\"\nheaders = { X-Team = \"a\" }\n"
    );
    check(
        &["add", "pets", "--openapi", "https://pets.example.com/api.json"],
        "[servers.pets]\nopenapi = \"https://pets.example.com/api.json\"\n",
    );
    let (message, _) = refused(&["add", "pets", "--openapi", "a.yaml", "npx"]);
    says(&message, "`--openapi` and `npx` both say what the server is");
    let world = World::new();
    says(&ends_with(run(&world, "add pets --openapi no.yaml"), 4).stderr, "no.yaml cannot be read");
}

#[test]
fn what_can_be_no_command_is_refused() {
    for (words, message) in [
        (&["add", "ws", "ws://127.0.0.1:1/mcp"][..], "`ws://` is not an address of an MCP server"),
        (&["add", "f", "file:///tmp/x"], "`file://` is not an address"),
        (&["add", "s", "--opeanpi", "x"], "`--opeanpi` is an option, not a command"),
        (&["add", "s", "--", "-y", "pkg"], "`-y` is an option, not a command"),
        (&["add", "-t", "cli", "s", "-x"], "`-x` is an option, not a command"),
    ] {
        let (said, hint) = refused(words);
        says(&said, message);
        assert!(!hint.is_empty(), "{said}");
    }
    check(&["add", "u", "unix:///run/x.sock"], "[servers.u]\nurl = \"unix:///run/x.sock\"\n");
}

#[test]
fn a_program_that_is_not_there_is_added_with_a_warning() {
    let world = World::new();
    let ended = ends_with(run(&world, "add s no-such-program --flag"), 0);
    says(&ended.stderr, "warning: command `no-such-program` was not found in PATH");
    says(&ended.stderr, "install it before you use the server");
    assert!(!ends_with(run(&world, "add t sh -c true"), 0).stderr.contains("warning"));
    assert!(!ends_with(run(&world, "add u ${HOME}/x"), 0).stderr.contains("not found"));
}

#[test]
fn a_name_without_letters_is_refused_with_a_suggestion() {
    for (name, suggested) in [("123", "server-123"), ("!!", "npx")] {
        let (message, hint) = refused(&["add", "--force", "--", name, "npx"]);
        says(&message, &format!("the name `{name}` has no letters"));
        says(&hint, &format!("`{suggested}`"));
    }
    assert!(added(&["add", "日本", "npx"]).contains("[servers.\"日本\"]"));
}

#[test]
fn force_replaces_an_entry_where_it_stands() {
    let world = World::new();
    world.write_user_config(
        "# One.\n[servers.a]\ncommand = \"x\" # old\n\n[servers.a.env]\nK = \"v\"\n\n# Two.\n\
         [servers.b]\ncommand = \"y\"\n",
    );
    let exists = ends_with(run(&world, "add a sh -c true"), 2);
    says(&exists.stderr, "`--force` replaces it; `capstan edit a` changes it");
    let replaced = ends_with(run(&world, "add --force a sh -c true"), 0);
    says(&replaced.stderr, "replaced `a` in ");
    assert_eq!(
        user_config(&world),
        "# One.\n[servers.a]\ncommand = \"sh\"\nargs = [\"-c\", \"true\"]\n\n# Two.\n\
         [servers.b]\ncommand = \"y\"\n"
    );
    ends_with(run(&world, "add c sh --force"), 0);
    says(&user_config(&world), "args = [\"--force\"]");
}

#[test]
fn the_scheme_of_an_address_may_be_in_capitals() {
    let world = World::new();
    run(&world, "add far HTTPS://a.example/mcp").ok();
    assert_eq!(column(&ok_json(&world, "list"), "name"), ["far"]);
    let config = user_config(&world);
    says(&config, "url = \"HTTPS://a.example/mcp\"");
    assert!(!config.contains("command"), "{config}");
}

#[test]
fn every_refusal_of_an_add_says_what_to_do_next() {
    let world = World::new();
    for words in [
        "add -e novalue s x",
        "add -e A=b s https://a.example/mcp",
        "add -H Novalue s https://a.example/mcp",
        "add -H A:b s x",
        "add --network 127.0.0.1/32 s x",
        "add s --openapi missing.yaml",
        "add -e A=b s --openapi https://a.example/api.yaml",
        "add s https://a.example/mcp --transport cli",
        "trust",
    ] {
        let (_, message, hint) = failure(&run(&world, &format!("--json {words}")));
        assert!(!hint.is_empty(), "{words}: {message}");
    }
}

#[test]
fn slips_of_a_command_are_named() {
    let (message, hint) = refused(&["add", "a", "http:/example.com"]);
    says(&message, "`http:/` is not an address");
    says(&hint, "did you mean `http://example.com`?");
    let (message, hint) = refused(&["add", "a", "npx -y foo"]);
    says(&message, "one word with spaces");
    says(&hint, "separately");
    let world = World::new();
    let ended = ends_with(run(&world, "add --timeout 30 s npx"), 0);
    says(&ended.stderr, "`--timeout 30` is in milliseconds");
    let ended = ends_with(run(&world, "add --timeout 30000 t npx"), 0);
    assert!(!ended.stderr.contains("milliseconds"), "{}", ended.stderr);
}
