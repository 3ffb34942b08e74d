//! Recognises values that are evidently no secrets.

use capstan_model::secret::{is_secret_name, looks_like_token};

/// Usual values of settings.
const WORDS: [&str; 14] = [
    "true", "false", "yes", "no", "on", "off", "null", "none", "trace", "debug", "info", "warn",
    "warning", "error",
];

/// Last words of names of settings that say where, in which form or how many, and are never secrets.
const HARMLESS: [&str; 32] = [
    "region",
    "zone",
    "env",
    "environment",
    "mode",
    "level",
    "format",
    "locale",
    "lang",
    "language",
    "tz",
    "timezone",
    "host",
    "hostname",
    "port",
    "url",
    "base",
    "endpoint",
    "version",
    "model",
    "workers",
    "threads",
    "size",
    "limit",
    "timeout",
    "count",
    "interval",
    "days",
    "branch",
    "color",
    "theme",
    "encoding",
];

/// Words in names of URLs that are secrets as a whole.
const SECRET_URLS: [&str; 3] = ["webhook", "hook", "dsn"];

/// The most digits of a number that is a setting, such as a port or a time in milliseconds.
const MAX_DIGITS: usize = 5;

/// Words in names of numbers that are secrets.
const SECRET_NUMBERS: [&str; 4] = ["pin", "otp", "code", "passcode"];

/// Last words of names that hold the path of a secret, not the secret.
const PLACES: [&str; 9] =
    ["path", "file", "dir", "directory", "folder", "home", "root", "sock", "socket"];

/// Variables with folders, whose names look like that of a password.
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];

/// True if the value of this name is evidently no secret.
///
/// That is a usual word of settings, a short number, the path of a file, or the plain value of a
/// setting such as `REGION`.
pub fn is_ordinary(name: &str, value: &str) -> bool {
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let is_one_of = |word: &str, all: &[&str]| all.iter().any(|one| word.eq_ignore_ascii_case(one));
    let is_telling = is_secret_name(name);
    let last = words.clone().next_back().unwrap_or_default();
    // Variables only: a key of a configuration may hold anything.
    let is_variable =
        name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let is_harmless = !is_telling
        && is_variable
        && is_one_of(last, &HARMLESS)
        && !words.clone().any(|word| is_one_of(word, &SECRET_URLS));
    if is_harmless && (is_plain_value(value) || is_plain_url(value)) {
        return true;
    }
    if is_path(value) {
        return !is_telling || FOLDERS.contains(&name) || is_one_of(last, &PLACES);
    }
    let is_number = value.len() <= MAX_DIGITS
        && value.chars().any(|c| c.is_ascii_digit())
        && value.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_setting = is_number && !words.any(|word| is_one_of(word, &SECRET_NUMBERS));
    !is_telling && (is_setting || is_one_of(value, &WORDS))
}

/// True if a text is a short value in words that people choose, such as `eu-west-1`.
fn is_plain_value(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || "._-+".contains(c)) && is_path_part(text)
}

/// True if a text is the URL of a service: no login, no query, and nothing random in its path.
fn is_plain_url(text: &str) -> bool {
    let schemes = ["https://", "http://", "wss://", "ws://"];
    let Some(rest) = schemes.iter().find_map(|scheme| text.strip_prefix(scheme)) else {
        return false;
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    let mut parts = path.trim_end_matches('/').split('/');
    !host.is_empty()
        && host.chars().all(is_host)
        && (path.is_empty() || parts.all(|part| !part.contains('@') && is_path_part(part)))
}

/// True if a text is nothing but a variable in braces, which names a secret and is none.
pub fn names_variable(text: &str) -> bool {
    let inner = ["${", "{env:"].iter().find_map(|start| text.strip_prefix(start));
    let name = inner.and_then(|inner| inner.strip_suffix('}')).unwrap_or_default();
    let name = name.strip_prefix("env:").or_else(|| name.strip_prefix("input:")).unwrap_or(name);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.chars().all(is_word)
}

/// True if a text is the path of a file, in words that people choose.
fn is_path(text: &str) -> bool {
    let starts = ["/", "~/", "./", "../"];
    let Some(rest) = starts.iter().find_map(|start| text.strip_prefix(start)) else { return false };
    let parts: Vec<&str> = rest.trim_end_matches('/').split('/').collect();
    let is_long = parts.len() > 1 || !rest.contains(|c: char| c.is_ascii_digit());
    is_long && parts.iter().all(|part| is_path_part(part))
}

fn is_path_part(part: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "._-+@ ".contains(c);
    // Random text has digits between letters of both cases.
    let word = part.trim_end_matches(|c: char| !c.is_alphabetic());
    let is_random = word.contains(|c: char| c.is_ascii_digit())
        && word.contains(char::is_uppercase)
        && word.contains(char::is_lowercase);
    !part.is_empty() && part.chars().all(is_plain) && !is_random && !looks_like_token(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue "First hour" 9: what is evidently no secret stays readable.
    #[test]
    fn settings_numbers_and_paths_are_ordinary() {
        for (name, value) in [
            ("DEBUG", "1"),
            ("PORT", "8080"),
            ("TIMEOUT_MS", "30000"),
            ("RATIO", "0.5"),
            ("LOG_LEVEL", "debug"),
            ("VERBOSE", "True"),
            ("DATA", "/srv/data/documents"),
            ("DATA", "/workspace"),
            ("DATA", "~/My Projects/app-2"),
            ("DATA", "./relative/path.json"),
            ("PWD", "/home/ada/project"),
            ("OLDPWD", "/home/ada/Project1/src"),
            ("SSH_AUTH_SOCK", "/tmp/ssh-abc/agent.12"),
            ("PRIVATE_KEY_PATH", "/home/ada/.ssh/id_rsa"),
            ("--key-file", "/etc/ssl/key.pem"),
            ("AWS_REGION", "eu-west-1"),
            ("NODE_ENV", "production"),
            ("TZ", "UTC"),
            ("LANG", "en_US.UTF-8"),
            ("LOG_FORMAT", "json"),
            ("WORKERS", "100000"),
            ("API_BASE", "https://api.example.com/v1"),
            ("SERVICE_URL", "http://localhost:8080/"),
        ] {
            assert!(is_ordinary(name, value), "{name}={value}");
        }
        for text in ["${TOKEN}", "${env:TOKEN}", "{env:TOKEN}", "${input:api-key}"] {
            assert!(names_variable(text), "{text}");
        }
    }

    /// Issue "First hour" 9: nothing that may be a secret is ordinary.
    #[test]
    fn whatever_may_be_a_secret_is_not_ordinary() {
        for (name, value) in [
            ("API_KEY", "1"),
            ("API_KEY", "debug"),
            ("API_KEY", "/srv/data/documents"),
            ("MYSQL_PWD", "/srv/data/documents"),
            ("pwd", "/srv/data/documents"),
            ("PWD", "hunter2"),
            ("KEY_FILE", "hunter2"),
            ("KEY_PATH", "ghp_0123456789abcdef"),
            ("PIN", "1234"),
            ("sms-code", "12345"),
            ("SETTING", "123456"),
            ("SETTING", "hunter2"),
            ("SETTING", "production"),
            ("SETTING", "/hunter2"),
            ("SETTING", "/9j4AAQSk/Zx81Qp"),
            ("SETTING", "/a/ghp_0123456789abcdef"),
            ("SETTING", "/a/0123456789abcdef0123456789abcdef"),
            ("SETTING", "/a/b?token=x"),
            ("SETTING", "https://host/path"),
            ("API_BASE", "https://ada:pw@host/path"),
            ("API_BASE", "https://host/path?key=x"),
            ("API_BASE", "https://host/a/Zx81QpAb9"),
            ("API_BASE", "https://host/0123456789abcdef0123456789abcdef"),
            ("SLACK_WEBHOOK_URL", "https://hooks.example.com/services/a/b"),
            ("SENTRY_DSN_URL", "https://host/path"),
            ("TOKEN_REGION", "hunter2"),
            ("AWS_REGION", "ghp_0123456789abcdef"),
            ("AWS_REGION", "hunter2 and more"),
            ("AWS_REGION", ""),
            ("env", "production"),
            ("aws-region", "eu-west-1"),
            ("SETTING", "."),
            ("SETTING", ""),
        ] {
            assert!(!is_ordinary(name, value), "{name}={value}");
        }
        for text in ["${A:-hunter22}", "${A}hunter22", "hunter22", "$ecret", "x ${A}", "${}", ""] {
            assert!(!names_variable(text), "{text}");
        }
    }
}
