//! Masks secrets in command lines.

use capstan_model::secret::{MASK, is_secret_name, looks_like_token};

use crate::mask::ordinary::{is_ordinary, names_variable};
use crate::mask::text::{mask_argument, mask_url};

/// Masks the words of a command line, including the word after `--token`.
pub fn mask_arguments<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut secret_flag = None;
    let mask = |argument: &'a str| {
        let is_flag = argument.starts_with('-');
        let is_shown = |flag| is_ordinary(flag, argument) || names_variable(argument);
        let hidden = !is_flag && secret_flag.is_some_and(|flag| !is_shown(flag));
        let takes_secret = is_flag && !argument.contains('=') && is_secret_name(argument);
        secret_flag = takes_secret.then_some(argument);
        if hidden { MASK.to_owned() } else { mask_argument(argument) }
    };
    arguments.into_iter().map(mask).collect()
}

/// Masks other text: passwords in URLs, and bare tokens.
pub fn mask_text(text: &str) -> String {
    let mask = |word: &str| match word {
        word if word.contains("://") => mask_url(word),
        word if looks_like_token(word) => MASK.to_owned(),
        word => word.to_owned(),
    };
    let words: Vec<String> = text.split(' ').map(mask).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(argument: &str, expected: &str) {
        assert_eq!(mask_argument(argument), expected);
    }

    #[test]
    fn secrets_in_arguments_are_hidden() {
        check("--token=abc", "--token=***");
        check("API_KEY=abc", "API_KEY=***");
        check("Authorization: Bearer abc", "Authorization: ***");
        check("https://me:pw@host/x", "https://***@host/x");
        check("postgres://me:p@w@host/db", "postgres://***@host/db");
        check("https://host/mcp?api_key=abc&x=1", "https://host/mcp?api_key=***&x=1");
        check("https://host/ghp_0123456789abcdef/mcp", "https://host/***/mcp");
        check("--url=https://me:pw@host", "--url=https://***@host");
        check("ghp_0123456789abcdef", "***");
        check("0123456789abcdef0123456789abcdef", "***");
    }

    #[test]
    fn ordinary_arguments_are_shown() {
        for argument in [
            "-y",
            "@linear/mcp-server",
            "--port=8080",
            "server.py",
            "C:\\dir",
            "a:b",
            "https://host/mcp",
            "/a/long/path/with/0123456789/digits/in/it",
            "key",
            "sk-1",
            "",
            "x=",
        ] {
            check(argument, argument);
        }
    }

    #[test]
    fn the_word_after_a_secret_flag_is_hidden() {
        let shown = mask_arguments(["--token", "abc", "--name", "abc", "--api-key", "-v", "x"]);
        assert_eq!(shown, ["--token", "***", "--name", "abc", "--api-key", "-v", "x"]);
        let hidden = ["--token", "/hunter2", "--key-file", "hunter2", "--token=${A}b"];
        assert_eq!(mask_arguments(hidden), ["--token", "***", "--key-file", "***", "--token=***"]);
    }

    #[test]
    fn a_variable_and_a_path_after_such_a_flag_are_shown() {
        let words = ["--token", "${TOKEN}", "--key=${KEY}", "--key-file", "/etc/ssl/key.pem"];
        assert_eq!(mask_arguments(words), words);
    }
}
