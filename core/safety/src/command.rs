//! Checks which commands may be started.

/// True if the operator's list allows `command` to run. `None` as the list allows any command.
///
/// A bare name in the list allows that name looked up in `PATH`; it does not allow a path that ends
/// in it, because the author of a path chooses the program.
pub fn is_allowed(command: &str, allowed: Option<&[String]>) -> bool {
    allowed.is_none_or(|allowed| allowed.iter().any(|entry| entry == command))
}

#[cfg(test)]
mod tests {
    use super::*;

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
