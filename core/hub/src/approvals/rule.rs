//! Turns a saved approval into a rule.

use capstan_model::secret::is_secret_name;
use capstan_model::{Effect, Verdict};
use capstan_policy::pattern::spellings;
use capstan_policy::{Arguments, Pattern};
use capstan_safety::mask::mask_prose;
use capstan_wire::{Json, object};

use super::Width;
use crate::ports::{NewRule, Question};

/// Longest argument value in a rule, in bytes.
const MAX_VALUE: usize = 200;

/// Most arguments in a rule.
const MAX_MATCHERS: usize = 16;

/// Deepest nesting of arguments in a rule.
const MAX_DEPTH: usize = 8;

/// Why no rule can express an approval of this width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoRule {
    /// The call is not a read, so a rule about reads would not cover it.
    #[error("its effect is not known to be a read")]
    NotARead,
    /// A pattern cannot express these arguments.
    #[error("these arguments cannot be written as a pattern ({0}); save the whole tool instead")]
    Arguments(&'static str),
    /// A pattern cannot express the item's name.
    #[error("its name cannot be written as a pattern")]
    Name,
}

/// Returns the rule that allows exactly the calls that an approval of this width covers.
pub(super) fn rule_for(question: &Question, width: Width) -> Result<NewRule, NoRule> {
    let id = &question.id;
    let server = id.server.clone();
    let item = || format!("{server}__{}", escaped(&id.item));
    let (pattern, effect) = match width {
        Width::Item => (item(), None),
        Width::Arguments => (format!("{}:{}", item(), matchers(&question.arguments)?), None),
        Width::ServerReads if question.effect != Effect::Read => return Err(NoRule::NotARead),
        Width::ServerReads => (format!("{server}__*"), Some(Effect::Read)),
        Width::Server => (format!("{server}__*"), None),
    };
    check(question, &pattern, width)?;
    Ok(NewRule { server, pattern, effect })
}

/// Parses the rule again: it must match this call, and have argument matchers only if it should.
fn check(question: &Question, pattern: &str, width: Width) -> Result<(), NoRule> {
    let read = Pattern::parse(pattern).map_err(|_| NoRule::Name)?;
    let names = spellings(&question.id, question.id.server.as_str());
    let means = read.matches(&names, Arguments::These(&question.arguments), Verdict::Allow);
    let looks = read.has_matchers();
    match width {
        Width::Arguments if means && looks => Ok(()),
        Width::Arguments => Err(NoRule::Arguments("they would be read differently")),
        Width::Item | Width::ServerReads | Width::Server if means && !looks => Ok(()),
        Width::Item | Width::ServerReads | Width::Server => Err(NoRule::Name),
    }
}

/// Returns `key=value,…,!` for every argument at any depth. The `!` excludes further arguments.
fn matchers(arguments: &Json) -> Result<String, NoRule> {
    let mut found = Vec::new();
    collect(arguments, "", 0, &mut found)?;
    found.push("!".to_owned());
    Ok(found.join(","))
}

fn collect(json: &Json, path: &str, depth: usize, found: &mut Vec<String>) -> Result<(), NoRule> {
    let members = object::members(json).map_err(|_| NoRule::Arguments("they are not an object"))?;
    if depth > MAX_DEPTH {
        return Err(NoRule::Arguments("they are nested too deep"));
    }
    for (name, value) in members {
        // Configuration files must not contain secrets.
        if is_secret_name(&name) {
            return Err(NoRule::Arguments("one of them looks like a secret"));
        }
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$');
        if name.is_empty() || !name.chars().all(plain) {
            return Err(NoRule::Arguments("the name of one has characters that patterns use"));
        }
        let key = if path.is_empty() { name } else { format!("{path}.{name}") };
        match value.as_bytes().first() {
            Some(b'{') if value.as_str() != "{}" => collect(&value, &key, depth + 1, found)?,
            Some(b'{' | b'[') => return Err(NoRule::Arguments("one of them is a list")),
            Some(b'"') => {
                let text = value.read::<String>();
                let text = text.map_err(|_| NoRule::Arguments("one of them is not a string"))?;
                found.push(format!("{key}={}", value_of(&text)?));
            }
            Some(_) | None => found.push(format!("{key}={}", value.as_str())),
        }
        if found.len() > MAX_MATCHERS {
            return Err(NoRule::Arguments("there are too many"));
        }
    }
    Ok(())
}

/// Returns a pattern that matches only this value.
fn value_of(text: &str) -> Result<String, NoRule> {
    if text.len() > MAX_VALUE {
        return Err(NoRule::Arguments("one of them is too long"));
    }
    // Commas separate arguments and braces are counted, even if they are escaped.
    let hard = |c: char| c.is_control() || matches!(c, ',' | '{' | '}');
    if text.contains(hard) || text.trim() != text {
        return Err(NoRule::Arguments("one of them has commas, braces, or spaces at an end"));
    }
    if mask_prose(text) != text {
        return Err(NoRule::Arguments("one of them looks like a secret"));
    }
    // A pattern cannot tell a number from a string that looks like one.
    if Json::parse(text.to_owned()).is_ok() {
        return Err(NoRule::Arguments("one of them is a string that looks like another type"));
    }
    Ok(escaped(text))
}

/// Returns a pattern that matches only this text.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '*' | '?' | '[' | ']' | '{' | '}' => {
                pattern.push('[');
                pattern.push(c);
                pattern.push(']');
            }
            '\\' => pattern.push_str(r"\\"),
            plain => pattern.push(plain),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use capstan_model::{By, Caller, Front, ItemId, Kind};
    use proptest::prelude::*;

    use super::*;

    fn question(item: &str, arguments: &str, effect: Effect) -> Question {
        Question {
            caller: Caller::operator(Front::Cli).into(),
            id: ItemId { server: "files".parse().unwrap(), item: item.to_owned() },
            kind: Kind::Tool,
            arguments: Json::parse(arguments.to_owned()).unwrap(),
            effect,
            rule: "permissions.default: ask".to_owned(),
            by: By::Default,
            offers: Vec::new(),
            open: None,
        }
    }

    fn pattern(arguments: &str) -> Result<String, NoRule> {
        let question = question("write", arguments, Effect::Write);
        rule_for(&question, Width::Arguments).map(|rule| rule.pattern)
    }

    #[test]
    fn each_width_has_its_rule() {
        let asked = question("write_file", r#"{"path":"/x","mode":"w"}"#, Effect::Read);
        let rule = |width| rule_for(&asked, width).unwrap();
        assert_eq!(rule(Width::Item).pattern, "files__write_file");
        assert_eq!(rule(Width::Arguments).pattern, "files__write_file:path=/x,mode=w,!");
        assert_eq!(rule(Width::Server).pattern, "files__*");
        let reads = rule(Width::ServerReads);
        assert_eq!((reads.pattern.as_str(), reads.effect), ("files__*", Some(Effect::Read)));
        assert_eq!(rule(Width::Server).effect, None);
    }

    #[test]
    fn a_rule_about_reads_is_no_answer_to_a_write() {
        for effect in [Effect::Write, Effect::Unknown] {
            let asked = question("write_file", "{}", effect);
            assert_eq!(rule_for(&asked, Width::ServerReads), Err(NoRule::NotARead));
        }
    }

    #[test]
    fn no_value_of_an_argument_acts_as_a_pattern() {
        for (arguments, expected) in [
            (r#"{"path":"/home/*"}"#, "files__write:path=/home/[*],!"),
            (r#"{"path":"a?[b]"}"#, "files__write:path=a[?][[]b[]],!"),
            (r#"{"path":"C:\\x"}"#, r"files__write:path=C:\\x,!"),
            (r#"{"n":1.50,"on":true,"x":null}"#, "files__write:n=1.50,on=true,x=null,!"),
            (r#"{"issue":{"repo":"a/b","n":1}}"#, "files__write:issue.repo=a/b,issue.n=1,!"),
            (r#"{"path":"a=b:c=d"}"#, "files__write:path=a=b:c=d,!"),
            (r#"{"path":""}"#, "files__write:path=,!"),
            ("{}", "files__write:!"),
        ] {
            assert_eq!(pattern(arguments).as_deref(), Ok(expected), "{arguments}");
        }
    }

    #[test]
    fn what_cannot_be_written_as_a_pattern_is_not_written_as_a_wider_one() {
        for arguments in [
            "null",
            "[]",
            r#"{"paths":["a"]}"#,
            r#"{"paths":{}}"#,
            r#"{"text":"a,b"}"#,
            r#"{"text":"a{b"}"#,
            r#"{"text":" a"}"#,
            r#"{"text":"1"}"#,
            r#"{"text":"true"}"#,
            r#"{"text":"a\nb"}"#,
            r#"{"text":"\ud800"}"#,
            r#"{"a.b":"x"}"#,
            r#"{"a b":"x"}"#,
            r#"{"":"x"}"#,
            r#"{"api_key":"x"}"#,
            r#"{"text":"ghp_0123456789abcdef"}"#,
            r#"{"login":{"password":"x"}}"#,
        ] {
            assert!(matches!(pattern(arguments), Err(NoRule::Arguments(_))), "{arguments}");
        }
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(MAX_VALUE + 1));
        assert!(pattern(&long).is_err());
    }

    #[test]
    fn a_name_that_would_be_read_as_arguments_has_no_rule() {
        for item in ["db:table=x", "a{b"] {
            let asked = question(item, "{}", Effect::Write);
            let rule = rule_for(&asked, Width::Item);
            if let Ok(rule) = rule {
                let read = Pattern::parse(&rule.pattern).unwrap();
                assert!(!read.has_matchers(), "{item}");
            }
        }
        assert_eq!(
            rule_for(&question("db:table=x", "{}", Effect::Write), Width::Item),
            Err(NoRule::Name)
        );
    }

    /// A saved approval covers the call that it was given for, and not one with more arguments.
    #[test]
    fn a_saved_yes_to_these_arguments_lets_no_others_pass() {
        let asked = question("write", r#"{"path":"/x","on":{"n":1}}"#, Effect::Write);
        let rule = rule_for(&asked, Width::Arguments).unwrap();
        let read = Pattern::parse(&rule.pattern).unwrap();
        let means = |arguments: &str| {
            let json = Json::parse(arguments.to_owned()).unwrap();
            let names = spellings(&asked.id, "files");
            read.matches(&names, Arguments::These(&json), Verdict::Allow)
        };
        assert!(means(r#"{"on":{"n":1},"path":"/x"}"#));
        for other in [
            "{}",
            r#"{"path":"/x"}"#,
            r#"{"path":"/x","on":{"n":1},"force":true}"#,
            r#"{"path":"/x","on":{"n":1,"force":true}}"#,
            r#"{"path":"/x","on":{"n":1},"more":{}}"#,
            r#"{"path":"/x","on":{"n":"1"}}"#,
            r#"{"path":"/x","on.n":1}"#,
            r#"{"path":"/x","on":{"n":1},"on.n":1}"#,
            r#"{"path":"/x","on":{"n":1},"\ud800":1}"#,
        ] {
            assert!(!means(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn a_saved_value_means_itself_and_nothing_else(
            value in "[a-z*?\\[\\]{}\\\\!^,. -]{0,6}",
            other in "[a-z*?\\[\\]{}\\\\!^,. -]{0,6}",
        ) {
            let arguments = |value: &str| serde_json::json!({ "path": value }).to_string();
            let asked = question("write", &arguments(&value), Effect::Write);
            if let Ok(rule) = rule_for(&asked, Width::Arguments) {
                let read = Pattern::parse(&rule.pattern).unwrap();
                let names = spellings(&asked.id, "files");
                let means = |value: &str| {
                    let json = Json::parse(arguments(value)).unwrap();
                    read.matches(&names, Arguments::These(&json), Verdict::Allow)
                };
                prop_assert!(means(&value));
                prop_assert!(other == value || !means(&other), "{} means {other:?}", rule.pattern);
            }
        }
    }
}
