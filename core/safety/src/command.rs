//! Checks which commands may be started, and splits command lines into words.

/// True if the operator's list allows `command` to run. `None` as the list allows any command.
///
/// A bare name in the list allows that name looked up in `PATH`; it does not allow a path that ends
/// in it, because the author of a path chooses the program.
pub fn is_allowed(command: &str, allowed: Option<&[String]>) -> bool {
    allowed.is_none_or(|allowed| allowed.iter().any(|entry| entry == command))
}

/// Splits a command line into the program and its arguments, with the quotes of a shell and nothing
/// else of it: no variables, no pipes, no substitution.
///
/// `None` if a quote is not closed, there is no word, or a word cannot be passed to a program.
pub fn words(line: &str) -> Option<Vec<String>> {
    let words = shlex::split(line)?;
    let is_usable = !words.is_empty() && words.iter().all(|word| !word.contains('\0'));
    is_usable.then_some(words)
}

/// True if a program is a bare name, which is looked up in `PATH`, or an absolute path. A relative
/// path is another program in each folder.
pub fn is_fixed(program: &str) -> bool {
    !program.is_empty() && (program.starts_with('/') || !program.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_split_without_a_shell() {
        for (line, expected) in [
            ("op read op://a/b", Some(vec!["op", "read", "op://a/b"])),
            ("pass 'my secret'", Some(vec!["pass", "my secret"])),
            (
                "a $HOME `b` $(c) | d; e > f",
                Some("a $HOME `b` $(c) | d; e > f".split(' ').collect()),
            ),
            ("", None),
            ("   ", None),
            ("a 'b", None),
            ("a \0", None),
        ] {
            let split = words(line);
            let split = split.as_ref().map(|words| words.iter().map(String::as_str).collect());
            assert_eq!(split, expected, "{line}");
        }
        for (program, expected) in
            [("op", true), ("/usr/bin/op", true), ("./op", false), ("bin/op", false), ("", false)]
        {
            assert_eq!(is_fixed(program), expected, "{program}");
        }
    }

    #[test]
    fn without_a_list_any_command_runs() {
        assert!(is_allowed("bash", None));
    }

    #[test]
    fn only_what_is_listed_runs_and_a_path_is_not_its_name() {
        let allowed = ["npx".to_owned(), "/opt/bin/tool".to_owned()];
        for command in ["npx", "/opt/bin/tool"] {
            assert!(is_allowed(command, Some(&allowed)), "{command}");
        }
        for command in ["bash", "/usr/bin/npx", "./npx", "NPX", "tool", "npx ", ""] {
            assert!(!is_allowed(command, Some(&allowed)), "{command}");
        }
        assert!(!is_allowed("npx", Some(&[])));
    }
}
