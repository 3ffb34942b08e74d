//! Tests of the conversion of offers.

use super::*;

/// Returns the command line or address of the chosen way, and its variables.
#[track_caller]
fn shown(chosen: &Chosen) -> String {
    let Delivery::Entry(entry) = &chosen.way else { return format!("{:?}", chosen.way) };
    let pairs = |pairs: &IndexMap<String, String>| {
        let pairs = pairs.iter().map(|(name, value)| format!(" {name}={value}"));
        pairs.collect::<String>()
    };
    match &entry.target {
        NewTarget::Stdio(program) | NewTarget::Cli(program) => {
            format!("{} {}{}", program.command, program.args.join(" "), pairs(&program.env))
        }
        NewTarget::Http(remote) => format!("http {}{}", remote.url, pairs(&remote.headers)),
        NewTarget::Sse(remote) => format!("sse {}{}", remote.url, pairs(&remote.headers)),
        NewTarget::OpenApi(api) => format!("openapi {}{}", api.document, pairs(&api.headers)),
    }
}

fn offer(rest: &str) -> Result<Offer, BadOffer> {
    Offer::read(&format!(r#"{{"name":"io.example/weather","description":"d",{rest}}}"#))
}

#[track_caller]
fn check(rest: &str, expected: &str) {
    assert_eq!(shown(&offer(rest).unwrap().choose(None).unwrap()), expected, "{rest}");
}

fn package(kind: &str, rest: &str) -> String {
    format!(
        r#""packages":[{{"registryType":"{kind}","identifier":"@a/b","version":"1.2.3"{rest}}}]"#
    )
}

#[test]
fn each_kind_of_package_is_started_by_its_own_program() {
    check(&package("npm", ""), "npx -y @a/b@1.2.3");
    check(&package("npm", r#","runtimeArguments":[{"name":"-y"}]"#), "npx -y @a/b@1.2.3");
    check(&package("pypi", ""), "uvx @a/b@1.2.3");
    check(&package("nuget", ""), "dnx @a/b@1.2.3 --yes --");
    let image = r#""packages":[{"registryType":"oci","identifier":"ghcr.io/a/b:1","version":"1",
        "environmentVariables":[{"name":"KEY","isRequired":true,"isSecret":true}]}]"#;
    check(image, "docker run -i --rm -e KEY ghcr.io/a/b:1 KEY=${KEY}");
    let image = r#""packages":[{"registryType":"oci","identifier":"a/b","version":"2"}]"#;
    check(image, "docker run -i --rm a/b:2");
    let bundle = r#""packages":[{"registryType":"mcpb","identifier":"https://h/x.mcpb",
        "fileSha256":"abc"}]"#;
    let chosen = offer(bundle).unwrap().choose(None).unwrap();
    assert!(matches!(chosen.way, Delivery::Bundle { .. }), "{chosen:?}");
}

#[test]
fn arguments_and_variables_are_what_is_said_or_asked_for() {
    let inputs = r#","packageArguments":[
            {"type":"positional","valueHint":"folder","isRequired":true},
            {"type":"named","name":"--port","default":"80"},
            {"type":"named","name":"--verbose"},
            {"type":"named","name":"--in","value":"{where}/x","variables":{"where":{}}},
            {"type":"positional","valueHint":"other"}],
        "environmentVariables":[
            {"name":"TOKEN","isRequired":true,"isSecret":true,"default":"no"},
            {"name":"LEVEL","default":"info"},
            {"name":"SPARE","description":"rarely"}]"#;
    let chosen = offer(&package("npm", inputs)).unwrap().choose(None).unwrap();
    assert_eq!(
        shown(&chosen),
        "npx -y @a/b@1.2.3 ${WEATHER_FOLDER} --port 80 --verbose --in ${WEATHER_WHERE}/x \
         TOKEN=${TOKEN} LEVEL=info"
    );
    let needs = chosen.needs.iter().map(|need| (need.variable.as_str(), need.required));
    let expected = [
        ("TOKEN", true),
        ("SPARE", false),
        ("WEATHER_FOLDER", true),
        ("WEATHER_WHERE", false),
        ("WEATHER_OTHER", false),
    ];
    assert_eq!(needs.collect::<Vec<_>>(), expected);
}

#[test]
fn an_address_is_used_when_there_is_no_package_or_it_is_asked_for() {
    let remote = r#""remotes":[{"type":"streamable-http","url":"https://{host}/mcp",
        "variables":{"host":{"default":"h.example"}},
        "headers":[{"name":"Authorization","value":"Bearer {key}","variables":{"key":{"isSecret":true}}}]}]"#;
    check(remote, "http https://h.example/mcp Authorization=Bearer ${WEATHER_KEY}");
    check(r#""remotes":[{"type":"sse","url":"https://h/sse"}]"#, "sse https://h/sse");
    let both = format!("{},{remote}", package("npm", ""));
    check(&both, "npx -y @a/b@1.2.3");
    let remote = offer(&both).unwrap().choose(Some("streamable-http")).unwrap();
    assert!(shown(&remote).starts_with("http "));
    // A package with an HTTP transport is not started over stdio.
    let listens = format!(
        "{},{}",
        package("npm", r#","transport":{"type":"sse"}"#),
        r#""remotes":[{"type":"sse","url":"https://h/sse"}]"#
    );
    check(&listens, "sse https://h/sse");
}

#[test]
fn what_could_be_taken_for_something_else_is_refused() {
    let refused = |rest: &str| offer(rest).and_then(|offer| offer.choose(None)).unwrap_err();
    for identifier in ["--eval=x", "a b", "a;b", "$(x)", "", "a\\nb"] {
        let rest = format!(r#""packages":[{{"registryType":"npm","identifier":"{identifier}"}}]"#);
        assert!(matches!(refused(&rest), BadOffer::Odd { what: "package", .. }), "{identifier}");
    }
    let version = r#""packages":[{"registryType":"npm","identifier":"a","version":"1 --x"}]"#;
    assert!(matches!(refused(version), BadOffer::Odd { what: "version", .. }));
    // An offer cannot refer to variables of the user.
    for part in [
        r#","packageArguments":[{"value":"${AWS_SECRET_ACCESS_KEY}"}]"#,
        r#","packageArguments":[{"value":"{a}","variables":{"a":{"default":"${HOME}"}}}]"#,
        r#","environmentVariables":[{"name":"A","default":"x${HOME}"}]"#,
    ] {
        let error = refused(&package("npm", part));
        assert!(matches!(error, BadOffer::Odd { what: "value", .. }), "{part}");
    }
    for url in ["file:///etc/passwd", "unix:/x", "--x", ""] {
        let rest = format!(r#""remotes":[{{"type":"sse","url":"{url}"}}]"#);
        assert!(matches!(refused(&rest), BadOffer::Odd { what: "address", .. }), "{url}");
    }
    assert!(matches!(refused(&package("cargo", "")), BadOffer::Nothing(_)));
    assert!(matches!(refused(r#""packages":[]"#), BadOffer::Nothing(_)));
    for text in ["", "[]", "{}", r#"{"name":1}"#, r#"{"name":"-x"}"#, r#"{"name":"a b"}"#] {
        assert!(Offer::read(text).is_err(), "{text}");
    }
}

#[test]
fn a_registry_names_no_variable_of_the_users_but_a_programs_own() {
    let remote = |part: &str| {
        format!(
            r#""remotes":[{{"type":"sse","url":"https://h/{{A}}","variables":{{"A":{{}}}},{part}}}]"#
        )
    };
    let template = r#""headers":[{"name":"Authorization","value":"Bearer {GITHUB_TOKEN}",
        "variables":{"GITHUB_TOKEN":{"isSecret":true}}}]"#;
    check(
        &remote(template),
        "sse https://h/${WEATHER_A} Authorization=Bearer ${WEATHER_GITHUB_TOKEN}",
    );
    let header = r#""headers":[{"name":"AWS_SECRET_ACCESS_KEY","isRequired":true}]"#;
    check(
        &remote(header),
        "sse https://h/${WEATHER_A} AWS_SECRET_ACCESS_KEY=${WEATHER_AWS_SECRET_ACCESS_KEY}",
    );
    for (part, expected) in [
        (r#""packageArguments":[{"valueHint":"HOME","isRequired":true}]"#, " ${WEATHER_HOME}"),
        (
            r#""packageArguments":[{"name":"--key","valueHint":"k","isRequired":true}]"#,
            " --key ${WEATHER_KEY}",
        ),
        (r#""packageArguments":[{"isRequired":true}]"#, " ${WEATHER_VALUE}"),
        (
            r#""environmentVariables":[{"name":"K","value":"{P}","variables":{"P":{}}}]"#,
            " K=${WEATHER_P}",
        ),
        (
            r#""environmentVariables":[{"name":"WEATHER_K","isRequired":true}]"#,
            " WEATHER_K=${WEATHER_K}",
        ),
        (
            r#""environmentVariables":[{"name":"GITHUB_TOKEN","isRequired":true}]"#,
            " GITHUB_TOKEN=${GITHUB_TOKEN}",
        ),
    ] {
        check(&package("npm", &format!(",{part}")), &format!("npx -y @a/b@1.2.3{expected}"));
    }
}

#[test]
fn a_variable_has_a_name_that_a_configuration_can_refer_to() {
    let text = r#"{"name":"a/7-zip.x","remotes":[{"type":"sse","url":"https://h/{a-b}","variables":{"a-b":{}}}]}"#;
    let chosen = Offer::read(text).unwrap().choose(None).unwrap();
    assert_eq!(shown(&chosen), "sse https://h/${_7_ZIP_X_A_B}");
}
