//! Values that must never be shown.

use std::fmt;

/// Printed in place of a secret.
pub const MASK: &str = "***";

/// A value without `Display`, whose `Debug` prints [`MASK`].
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret<T = String>(T);

impl<T> Secret<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value itself, for the one place that must use it.
    pub fn reveal(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

/// Words that mark a name as that of a secret.
const SECRET_WORDS: &[&str] = &[
    "apikeys",
    "auth",
    "authorization",
    "bearer",
    "cookies",
    "creds",
    "dsn",
    "jwt",
    "key",
    "keys",
    "pass",
    "passwords",
    "pat",
    "private",
    "secrets",
    "sid",
    "signature",
    "tokens",
];

/// Like [`SECRET_WORDS`], but also as the end of a compound word, as in `accesstoken`.
const SECRET_ENDS: &[&str] = &[
    "apikey",
    "cookie",
    "credential",
    "credentials",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "pwd",
    "secret",
    "token",
];

/// Prefixes of the tokens of well-known services.
const TOKEN_STARTS: &[&str] = &[
    "AIza",
    "AKIA",
    "ASIA",
    "eyJ",
    "dop_v1_",
    "ghp_",
    "gho_",
    "ghr_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "lin_api_",
    "lin_oauth_",
    "npm_",
    "ntn_",
    "pk_live_",
    "rk_live_",
    "secret_",
    "sk-",
    "sk_live_",
    "sk_test_",
    "whsec_",
    "SG.",
    "xapp-",
    "xoxa-",
    "xoxb-",
    "xoxc-",
    "xoxd-",
    "xoxe-",
    "xoxe.",
    "xoxp-",
    "xoxr-",
    "xoxs-",
    "ya29.",
];

/// Minimum length of a run of letters and digits that counts as a token.
const LONG: usize = 32;

/// Minimum length of a token with a well-known prefix.
const SHORT: usize = 12;

/// Names of secrets whose single words are harmless.
const SECRET_NAMES: &[&str] =
    &["database_url", "db_uri", "db_url", "connection_string", "webhook_url"];

/// Words beside which `tokens` means counted parts of a text, which are not secret.
const COUNTING_WORDS: &[&str] = &[
    "audio",
    "budget",
    "cache",
    "cached",
    "candidates",
    "completion",
    "context",
    "count",
    "image",
    "input",
    "limit",
    "max",
    "min",
    "n",
    "new",
    "num",
    "output",
    "per",
    "prediction",
    "prompt",
    "reasoning",
    "remaining",
    "text",
    "thinking",
    "thoughts",
    "total",
    "used",
];

/// True if a key, variable, header, flag or parameter of this name holds a secret.
///
/// When in doubt, the name counts as secret: hiding a harmless value is better than showing a
/// secret.
pub fn is_secret_name(name: &str) -> bool {
    let mut words = words_of(name);
    let whole = words.join("_");
    // A name that ends so holds the name of a variable, not its value.
    if whole == "progress_token" || whole.ends_with("_env_var") {
        return false;
    }
    if counts_tokens(&words) {
        words.retain(|word| word != "tokens");
    }
    let tells = |word: &String| {
        SECRET_WORDS.contains(&word.as_str()) || SECRET_ENDS.iter().any(|end| word.ends_with(end))
    };
    words.iter().any(tells) || SECRET_NAMES.iter().any(|name| whole.ends_with(name))
}

/// True if a single word looks like a token.
pub fn looks_like_token(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_prefix("Bearer ").unwrap_or(text);
    if is_token_of_a_service(text) {
        return true;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '=');
    let mixed = text.contains(|c: char| c.is_ascii_digit())
        && text.contains(|c: char| c.is_ascii_alphabetic());
    text.len() >= LONG && mixed && text.chars().all(plain)
}

/// True if a word has the prefix of a well-known service's tokens.
pub fn is_token_of_a_service(word: &str) -> bool {
    word.len() >= SHORT && TOKEN_STARTS.iter().any(|start| word.starts_with(start))
}

/// True if the word before `tokens`, or after it if it comes first, is a counting word.
fn counts_tokens(words: &[String]) -> bool {
    let Some(at) = words.iter().position(|word| word == "tokens") else { return false };
    let beside = words.get(at.checked_sub(1).unwrap_or(at + 1));
    beside.is_some_and(|word| COUNTING_WORDS.contains(&word.as_str()))
}

/// Splits a name into words, in lower case and without trailing digits: `DBPass2` is `db`, `pass`.
///
/// It is split at anything that is not a letter or digit, where an upper-case letter follows a
/// lower-case one, and before the last of several upper-case letters.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        let next_is_small = rest.peek().is_some_and(|next| next.is_lowercase());
        let rises = c.is_uppercase() && (!previous.is_uppercase() || next_is_small);
        if rises || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        previous = c;
    }
    let bare = words.iter().map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    bare.filter(|word| !word.is_empty()).map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn hidden(names: &str) {
        for name in names.split_whitespace() {
            assert!(is_secret_name(name), "{name} is shown");
        }
    }

    #[track_caller]
    fn shown(names: &str) {
        for name in names.split_whitespace() {
            assert!(!is_secret_name(name), "{name} is hidden");
        }
    }

    #[test]
    fn names_of_secrets_are_known_in_any_spelling() {
        hidden("GITHUB_TOKEN AUTH_TOKEN accessToken accesstoken access_tokens TOKEN2 tokens");
        hidden("api_key apiKey APIKey --api-key X-Api-Key OPENAI_API_KEY APIKEY apikeys");
        hidden("key keys aws.key privateKey privatekey PRIVATE_KEY_PATH sshKey1");
        hidden("db_password DB_PASSWORD PGPASSWORD passwords passwd MYSQL_PWD DBPass pass");
        hidden("Authorization Proxy-Authorization auth HTTPAuth SSH_AUTH_SOCK bearer jwt");
        hidden("client_secret clientSecret secrets credentials AWS_CREDENTIAL creds");
        hidden("Cookie Set-Cookie sessioncookie sid signature GITHUB_PAT githubPAT");
        hidden("SENTRY_DSN DATABASE_URL dbUrl connectionString SLACK_WEBHOOK_URL");
        hidden("max_tokens_secret authTokens cached_access_tokens GITHUB_TOKENS");
    }

    #[test]
    fn names_that_only_resemble_them_are_shown() {
        shown("keyboard KEYBOARD_LAYOUT KEYMAP keywords monkey MONKEY_MODE DONKEY");
        shown("author authors authority GIT_AUTHOR_NAME path PATH pattern compass");
        shown("BYPASS_COUNT COMPASS_HEADING passenger SECRETARY_NAME tokenizer TOKENIZER_PATH");
        shown("name url id side privateer bearer_token_env_var apiKeyEnvVar --token-env-var");
        hidden("env_var_token TOKEN_ENV ENV_VAR_SECRET");
        assert!(!is_secret_name(""));
    }

    #[test]
    fn what_counts_tokens_is_shown() {
        shown("progressToken progress_token max_tokens maxTokens MAX_TOKENS maxtokens");
        shown("inputTokens output_tokens totalTokens cache_read_input_tokens budget_tokens");
        shown("max_tokens_to_sample maxOutputTokens thinking-tokens tokens_used");
    }

    #[test]
    fn a_secret_is_never_printed() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), MASK);
    }
}
