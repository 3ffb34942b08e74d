//! Tests of public names, by example and for arbitrary lists.

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;

fn server(name: &str) -> ServerName {
    name.parse().unwrap()
}

fn id(server_name: &str, item: &str) -> ItemId {
    ItemId { server: server(server_name), item: item.to_owned() }
}

/// Returns a table to which these lists were added, in this order.
fn table(alphabet: Alphabet, lists: &[(&str, Naming, &[&str])]) -> NameTable {
    let mut table = NameTable::new(alphabet);
    for (name, naming, items) in lists {
        table.update(&server(name), *naming, items.iter().copied());
    }
    table
}

/// Returns the name of a single item.
fn called(alphabet: Alphabet, naming: Naming, item: &str) -> String {
    let table = table(alphabet, &[("s", naming, &[item])]);
    table.public(&id("s", item)).unwrap().to_string()
}

#[test]
fn c58_odd_characters_long_names_and_clashes() {
    let long = format!("{}{}", "a".repeat(35), "b".repeat(35));
    let bare = [
        ("first", Naming::Bare, &["a b/ü", "search", &long][..]),
        ("second", Naming::Bare, &["search"]),
    ];
    let table = table(Alphabet::Usual, &bare);
    let name = |server, item: &str| table.public(&id(server, item)).unwrap().to_string();
    assert_eq!(name("first", "a b/ü"), "a_b__");
    assert_eq!(name("first", &long), format!("{}___{}", "a".repeat(28), "b".repeat(32)));
    assert_eq!(name("first", &long).len(), MAX_NAME);
    assert_eq!(name("first", "search"), "search");
    assert_eq!(name("second", "search"), "second__search");
}

#[test]
fn each_naming_and_each_alphabet_has_its_form() {
    let cases = [
        (Alphabet::Usual, Naming::Prefixed, "a.b c", "s__a.b_c"),
        (Alphabet::Usual, Naming::Mcp, "a.b", "mcp__s__a.b"),
        (Alphabet::Usual, Naming::Bare, "A.b", "A.b"),
        (Alphabet::Usual, Naming::Bare, "1st", "1st"),
        (Alphabet::LetterFirst, Naming::Bare, "1st", "_1st"),
        (Alphabet::LetterFirst, Naming::Prefixed, "1st", "s__1st"),
        (Alphabet::NoDots, Naming::Prefixed, "a.b", "s__a_b"),
        (Alphabet::NoDots, Naming::Bare, "a.b", "a_b"),
    ];
    for (alphabet, naming, item, expected) in cases {
        assert_eq!(called(alphabet, naming, item), expected, "{alphabet:?} {naming:?} {item}");
    }
}

#[test]
fn a_bare_name_that_could_be_another_servers_id_is_not_given() {
    for item in ["files__delete", "mcp__files__delete", "files: delete", "files/ x", ""] {
        let name = called(Alphabet::Usual, Naming::Bare, item);
        assert!(name.starts_with("s__"), "{item:?} is called {name}");
    }
    for item in ["delete", "files.delete", "Files.delete", "a_b", "files__", "__init", ".hidden"] {
        let name = called(Alphabet::Usual, Naming::Bare, item);
        assert_eq!(name, item);
    }
}

#[test]
fn names_that_would_be_the_same_get_a_hash_and_the_exact_one_stays() {
    let table = table(Alphabet::Usual, &[("s", Naming::Prefixed, &["a b", "a_b", "a/b"])]);
    let name = |item| table.public(&id("s", item)).unwrap().as_ref();
    assert_eq!(name("a_b"), "s__a_b");
    for item in ["a b", "a/b"] {
        let hash = name(item).strip_prefix("s__a_b").unwrap();
        assert!(hash.len() == HASH && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{hash}");
    }
    assert_ne!(name("a b"), name("a/b"));
}

#[test]
fn long_names_that_differ_in_the_middle_stay_apart_within_the_length() {
    let ends = |middle: &str| format!("{}{middle}{}", "h".repeat(40), "t".repeat(40));
    let (x, y) = (ends("x"), ends("y"));
    let table = table(Alphabet::Usual, &[("s", Naming::Prefixed, &[&x, &y])]);
    let name = |item: &str| table.public(&id("s", item)).unwrap().to_string();
    assert_eq!(name(&x), format!("s__{}___{}", "h".repeat(25), "t".repeat(32)));
    assert_eq!(name(&y).len(), MAX_NAME);
    assert_eq!(name(&y).get(..MAX_NAME - HASH), name(&x).get(..MAX_NAME - HASH));
    assert_eq!(table.resolve(&name(&y)), Some(id("s", &y)));
}

#[test]
fn a_name_is_not_given_away_when_its_item_disappears() {
    let mut table = table(Alphabet::Usual, &[("s", Naming::Prefixed, &["a b"])]);
    table.update(&server("s"), Naming::Prefixed, ["a_b"]);
    assert_eq!(table.resolve("s__a_b"), Some(id("s", "a b")));
    assert_ne!(table.public(&id("s", "a_b")).unwrap().as_ref(), "s__a_b");
    table.update(&server("s"), Naming::Prefixed, ["a b", "a_b"]);
    assert_eq!(table.public(&id("s", "a b")).unwrap().as_ref(), "s__a_b");
}

#[test]
fn a_server_that_lists_new_names_forever_does_not_fill_the_memory() {
    let mut table = NameTable::default();
    for round in 0..3 * MAX_RETIRED {
        table.update(&server("s"), Naming::Bare, [format!("tool {round}").as_str()]);
    }
    assert_eq!(table.by_name.len(), MAX_RETIRED + 1);
    let theirs = &table.by_server[&server("s")];
    assert_eq!((theirs.names.len(), theirs.retired.len()), (MAX_RETIRED + 1, MAX_RETIRED));
    assert_eq!(table.resolve("tool_0"), None);
}

#[test]
fn nobody_is_called_by_a_name_that_was_never_given() {
    let table = table(Alphabet::Usual, &[("s", Naming::Bare, &["a"])]);
    for name in ["", "b", "A", "s__a", "a "] {
        assert_eq!(table.resolve(name), None, "{name:?}");
    }
    assert_eq!(table.public(&id("t", "a")), None);
}

fn namings() -> impl Strategy<Value = Naming> {
    prop_oneof![Just(Naming::Prefixed), Just(Naming::Mcp), Just(Naming::Bare)]
}

fn alphabets() -> impl Strategy<Value = Alphabet> {
    prop_oneof![Just(Alphabet::Usual), Just(Alphabet::LetterFirst), Just(Alphabet::NoDots)]
}

/// Names that collide often, long names, and arbitrary ones.
fn items() -> impl Strategy<Value = Vec<String>> {
    let item = prop_oneof!["[ab][ _./ü]{0,2}[ab]?", "[ab]{60,70}", "s[12]__[ab]", ".{0,80}"];
    proptest::collection::vec(item, 0..8)
}

/// Lists of up to four servers, in the order in which they are added.
fn lists() -> impl Strategy<Value = Vec<(ServerName, Naming, Vec<String>)>> {
    let server = (0..4_usize).prop_map(|number| format!("s{number}").parse().unwrap());
    proptest::collection::vec((server, namings(), items()), 0..8)
}

fn tell(table: &mut NameTable, lists: &[(ServerName, Naming, Vec<String>)]) {
    for (server, naming, items) in lists {
        table.update(server, *naming, items.iter().map(String::as_str));
    }
}

/// Returns every item that was ever added, with its name.
fn all(table: &NameTable, lists: &[(ServerName, Naming, Vec<String>)]) -> Vec<(ItemId, String)> {
    let ids = lists.iter().flat_map(|(server, _, items)| {
        items.iter().map(|item| ItemId { server: server.clone(), item: item.clone() })
    });
    ids.map(|id| (id.clone(), table.public(&id).unwrap().to_string())).collect()
}

proptest! {
    #[test]
    fn any_lists_get_names_that_are_clean_short_unique_and_lead_back(
        alphabet in alphabets(), lists in lists(),
    ) {
        let mut table = NameTable::new(alphabet);
        tell(&mut table, &lists);
        let mut seen = HashSet::new();
        for (id, name) in all(&table, &lists) {
            prop_assert!(name.len() <= MAX_NAME && !name.is_empty(), "{}", name);
            prop_assert!(name.chars().all(|c| alphabet.has(c)), "{}", name);
            let first = name.chars().next().unwrap();
            let letter = first.is_ascii_alphabetic() || first == '_';
            prop_assert!(alphabet != Alphabet::LetterFirst || letter, "{}", name);
            prop_assert_eq!(table.resolve(&name), Some(id.clone()));
            seen.insert((id, name));
        }
        let names: HashSet<&str> = seen.iter().map(|(_, name)| name.as_str()).collect();
        prop_assert_eq!(names.len(), seen.len());
    }

    #[test]
    fn whatever_comes_or_goes_later_no_name_changes_its_meaning(
        before in lists(), after in lists(),
    ) {
        let mut table = NameTable::default();
        tell(&mut table, &before);
        let known = all(&table, &before);
        tell(&mut table, &after);
        for (id, name) in known {
            prop_assert_eq!(table.resolve(&name), Some(id));
        }
    }

    #[test]
    fn the_order_within_a_list_does_not_matter(
        naming in namings(), items in items(), shuffled in any::<proptest::sample::Index>(),
    ) {
        let turn = if items.is_empty() { 0 } else { shuffled.index(items.len()) };
        let mut turned = items.clone();
        turned.rotate_left(turn);
        let (mut one, mut other) = (NameTable::default(), NameTable::default());
        let one_list = [(server("s"), naming, items)];
        let other_list = [(server("s"), naming, turned)];
        tell(&mut one, &one_list);
        tell(&mut other, &other_list);
        prop_assert_eq!(all(&one, &one_list), all(&other, &one_list));
    }
}
