//! The `files` server: what it reads, and above all what it does not.

use std::fs;

use capstan_demo::{Demo, Options, run};
use serde_json::{Value, json};

use crate::world::{Said, World, refused, request};

fn call(world: &World, tool: &str, arguments: Value) -> Said {
    world.call(Demo::Files, tool, arguments)
}

fn read(world: &World, path: &str) -> Said {
    call(world, "read_file", json!({ "path": path }))
}

#[test]
fn a_folder_is_listed_by_name_with_kinds_and_sizes() {
    let world = World::new();
    world.write("b.txt", "four");
    world.write("a/x", "");
    let expected = json!({
        "entries": [
            { "name": "a", "kind": "folder" },
            { "name": "b.txt", "kind": "file", "size": 4 },
        ],
        "truncated": false,
    });
    assert_eq!(call(&world, "list_folder", json!({})), Ok(expected));
}

#[test]
fn a_text_file_is_read_by_lines() {
    let world = World::new();
    world.write("lines", "one\ntwo\nthree\nfour\n");
    assert_eq!(read(&world, "lines"), Ok(json!("one\ntwo\nthree\nfour\n")));
    let part = call(&world, "read_file", json!({ "path": "lines", "offset": 2, "limit": 2 }));
    assert_eq!(part, Ok(json!("two\nthree\n")));
    let beyond = call(&world, "read_file", json!({ "path": "lines", "offset": 9 }));
    assert_eq!(beyond, Ok(json!("")));
}

#[test]
fn a_partial_read_says_where_to_go_on_and_a_full_one_does_not() {
    let world = World::new();
    world.write("lines", "one\ntwo\nthree\n");
    let blocks = |limit: u64| {
        let arguments = json!({ "path": "lines", "limit": limit });
        let params = json!({ "name": "read_file", "arguments": arguments });
        world.modern(Demo::Files, "tools/call", params)["content"].clone()
    };
    assert_eq!(blocks(3).as_array().map(Vec::len), Some(1));
    assert!(blocks(2)[1]["text"].as_str().unwrap().contains("line 3"));
}

#[test]
fn text_beyond_the_limit_comes_in_parts() {
    let world = World::new();
    let line = format!("{}\n", "x".repeat(999));
    world.write("big", line.repeat(1000));
    let first = read(&world, "big").unwrap();
    let shown = first.as_str().unwrap().len();
    assert!(shown <= 256 * 1024 && shown > 250 * 1024, "{shown}");
}

#[test]
fn a_file_that_is_not_text_comes_as_base64() {
    let world = World::new();
    world.write("dot.png", [0x89, b'P', b'N', b'G', 0]);
    let params = json!({ "name": "read_file", "arguments": { "path": "dot.png" } });
    let block = world.modern(Demo::Files, "tools/call", params)["content"][0].clone();
    let resource = json!({ "uri": "file:///dot.png", "mimeType": "image/png", "blob": "iVBORwA=" });
    assert_eq!(block, json!({ "type": "resource", "resource": resource }));
}

#[test]
fn files_are_found_by_glob() {
    let world = World::new();
    for path in ["a.rs", "src/b.rs", "src/deep/c.rs", "src/d.md", ".git/e.rs"] {
        world.write(path, "");
    }
    let find = |pattern: &str| {
        call(&world, "find_files", json!({ "pattern": pattern })).unwrap()["paths"].clone()
    };
    assert_eq!(find("*.rs"), json!(["a.rs", "src/b.rs", "src/deep/c.rs"]));
    assert_eq!(find("src/*.rs"), json!(["src/b.rs"]));
    assert_eq!(find("src/**/*.{rs,md}"), json!(["src/b.rs", "src/d.md", "src/deep/c.rs"]));
    assert_eq!(find("nothing"), json!([]));
}

#[test]
fn many_results_are_cut_off_and_the_answer_says_so() {
    let world = World::new();
    world.write("many", "needle\n".repeat(250));
    for n in 0..1_001 {
        world.write(&format!("f{n}.x"), "");
    }
    let found = call(&world, "find_files", json!({ "pattern": "*.x" })).unwrap();
    assert_eq!(
        (found["paths"].as_array().unwrap().len(), &found["truncated"]),
        (1000, &json!(true))
    );
    let found = call(&world, "search_text", json!({ "query": "needle" })).unwrap();
    assert_eq!(
        (found["matches"].as_array().unwrap().len(), &found["truncated"]),
        (200, &json!(true))
    );
}

#[test]
fn text_is_found_with_its_place() {
    let world = World::new();
    world.write("src/a", "first\nA Needle here\n");
    world.write("b", "needle");
    world.write("binary", b"needle\0");
    let search = |arguments| call(&world, "search_text", arguments).unwrap()["matches"].clone();
    let in_a = json!({ "path": "src/a", "line": 2, "text": "A Needle here" });
    let in_b = json!({ "path": "b", "line": 1, "text": "needle" });
    assert_eq!(search(json!({ "query": "needle" })), json!([in_b, in_a]));
    assert_eq!(search(json!({ "query": "Needle" })), json!([in_a]));
    assert_eq!(search(json!({ "query": "needle", "path": "src" })), json!([in_a]));
}

#[test]
fn paths_that_lead_outside_are_refused_by_every_tool_that_takes_one() {
    let world = World::new();
    fs::write(world.outside.join("secret"), "s3cret").unwrap();
    world.write("sub/x", "");
    let absolute = world.outside.join("secret").display().to_string();
    let beside = format!("{}-not", world.root.display());
    let cases = [
        ("../outside/secret", "contains `..`"),
        ("..", "contains `..`"),
        ("sub/../../outside", "contains `..`"),
        ("sub/../sub/x", "contains `..`"),
        (absolute.as_str(), "outside of the folder"),
        ("/etc/passwd", "outside of the folder"),
        ("/", "outside of the folder"),
        (beside.as_str(), "outside of the folder"),
        ("sub\0/x", "NUL"),
    ];
    for (path, reason) in cases {
        refused(read(&world, path), reason);
        refused(call(&world, "list_folder", json!({ "path": path })), reason);
        refused(call(&world, "search_text", json!({ "query": "s", "path": path })), reason);
    }
}

#[test]
fn an_absolute_path_inside_is_as_good_as_a_relative_one() {
    let world = World::new();
    world.write("a", "text");
    let absolute = world.root.join("a").display().to_string();
    assert_eq!(read(&world, &absolute), Ok(json!("text")));
}

#[cfg(unix)]
#[test]
fn links_may_lead_within_the_folder_and_nowhere_else() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    fs::write(world.outside.join("secret"), "s3cret").unwrap();
    world.write("inside", "text");
    symlink(world.root.join("inside"), world.root.join("good")).unwrap();
    symlink(world.outside.join("secret"), world.root.join("bad")).unwrap();
    symlink(&world.outside, world.root.join("bad_folder")).unwrap();
    symlink("nowhere", world.root.join("broken")).unwrap();

    assert_eq!(read(&world, "good"), Ok(json!("text")));
    refused(read(&world, "bad"), "link that leaves");
    refused(read(&world, "bad_folder/secret"), "link that leaves");
    refused(read(&world, "broken"), "there is no");
    refused(call(&world, "list_folder", json!({ "path": "bad_folder" })), "link that leaves");
    let found = call(&world, "search_text", json!({ "query": "s3cret" })).unwrap();
    assert_eq!(found["matches"], json!([]));
    let found = call(&world, "find_files", json!({ "pattern": "secret" })).unwrap();
    assert_eq!(found["paths"], json!([]));
    let error = world.modern(Demo::Files, "resources/read", json!({ "uri": "file:///bad" }));
    assert_eq!(error["code"], -32602);
}

#[cfg(unix)]
#[test]
fn what_is_not_a_regular_file_is_never_opened() {
    let world = World::new();
    let _socket = std::os::unix::net::UnixListener::bind(world.root.join("socket")).unwrap();
    refused(read(&world, "socket"), "not a regular file");
    refused(read(&world, ""), "is a folder");
}

#[test]
fn bad_arguments_are_refused_in_words() {
    let world = World::new();
    world.write("big.bin", vec![0; 512 * 1024 + 1]);
    world.write("a", "");
    refused(read(&world, "big.bin"), "the limit is 524288");
    refused(read(&world, "absent"), "there is no `absent`");
    refused(read(&world, "a/b"), "there is no `a/b`");
    refused(call(&world, "read_file", json!({})), "missing field `path`");
    refused(call(&world, "read_file", json!({ "path": 1 })), "invalid type");
    refused(call(&world, "read_file", json!({ "path": "a", "limit": -1 })), "invalid");
    refused(call(&world, "read_file", json!({ "path": "a", "offset": 0 })), "from 1");
    refused(call(&world, "list_folder", json!({ "path": "a" })), "not a folder");
    refused(call(&world, "find_files", json!({ "pattern": "a[" })), "invalid pattern");
    refused(call(&world, "search_text", json!({ "query": "" })), "empty");
}

#[test]
fn resources_are_the_files_seen_from_the_folder() {
    let world = World::new();
    world.write("a dir/ü.md", "# Hi");
    let listed = world.modern(Demo::Files, "resources/list", json!({}));
    let uri = "file:///a%20dir/%C3%BC.md";
    let resource = json!({ "uri": uri, "name": "a dir/ü.md", "mimeType": "text/markdown" });
    assert_eq!(listed["resources"], json!([resource]));
    let contents = json!([{ "uri": uri, "mimeType": "text/markdown", "text": "# Hi" }]);
    let read = world.modern(Demo::Files, "resources/read", json!({ "uri": uri }));
    assert_eq!(read["contents"], contents);
    assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(0), &json!("private")));
    let templates = world.modern(Demo::Files, "resources/templates/list", json!({}));
    assert_eq!(templates["resourceTemplates"][0]["uriTemplate"], "file:///{path}");
}

#[test]
fn long_lists_of_resources_come_in_pages() {
    let world = World::new();
    for n in 0..250 {
        world.write(&format!("f{n:03}"), "");
    }
    let first = world.modern(Demo::Files, "resources/list", json!({}));
    assert_eq!(first["resources"].as_array().map(Vec::len), Some(200));
    let cursor = first["nextCursor"].clone();
    let second = world.modern(Demo::Files, "resources/list", json!({ "cursor": cursor }));
    assert_eq!(second["resources"].as_array().map(Vec::len), Some(50));
    assert_eq!(second.get("nextCursor"), None);
}

#[test]
fn uris_that_lead_nowhere_or_outside_are_refused() {
    let world = World::new();
    fs::write(world.outside.join("secret"), "s3cret").unwrap();
    let cases = [
        ("file:///absent", -32002),
        ("http://example/a", -32002),
        ("file://host/a", -32002),
        ("file:///%zz", -32002),
        ("file:///%ff", -32002),
        ("file:///../outside/secret", -32602),
        ("file:///%2e%2e/outside/secret", -32602),
        ("file:////etc/passwd", -32602),
        ("file:///%2Fetc%2Fpasswd", -32602),
        ("file:///", -32602),
    ];
    for (uri, code) in cases {
        let said =
            world.legacy(Demo::Files, &[request(1, "resources/read", json!({ "uri": uri }))]);
        assert_eq!(said[0]["error"]["code"], code, "{uri}");
        let modern = world.modern(Demo::Files, "resources/read", json!({ "uri": uri }));
        assert_eq!(modern["code"], -32602, "{uri}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_an_error_at_the_start() {
    let world = World::new();
    world.write("file", "");
    for root in [world.root.join("absent"), world.root.join("file")] {
        let options = Options { root, data: world.data.clone() };
        assert!(run(Demo::Files, options, &b""[..], Vec::new()).is_err());
    }
}
