//! Schemes of addresses that open an app on the user's own device.

/// Schemes that browsers and systems have a meaning of their own for.
const TAKEN: &[&str] = &[
    "about",
    "blob",
    "chrome",
    "content",
    "data",
    "edge",
    "facetime",
    "file",
    "filesystem",
    "ftp",
    "http",
    "https",
    "intent",
    "jar",
    "javascript",
    "mailto",
    "market",
    "moz-extension",
    "sftp",
    "sip",
    "sms",
    "smb",
    "ssh",
    "tel",
    "urn",
    "vbscript",
    "view-source",
    "ws",
    "wss",
];

/// True for a scheme that can belong to one app (RFC 8252, section 7.1), such as `cursor`.
///
/// Which app it opens is up to the device, so an operator has to name the scheme.
pub fn is_app_scheme(scheme: &str) -> bool {
    let fits =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    scheme.starts_with(|first: char| first.is_ascii_lowercase())
        && scheme.len() <= 64
        && scheme.bytes().all(fits)
        // Windows has handlers such as `ms-settings` and `ms-msdt`.
        && !scheme.starts_with("ms-")
        && !TAKEN.contains(&scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_of_browsers_and_systems_belong_to_no_app() {
        for good in ["cursor", "vscode", "vscode-insiders", "com.example.app"] {
            assert!(is_app_scheme(good), "{good}");
        }
        for bad in [
            "",
            "javascript",
            "data",
            "file",
            "https",
            "intent",
            "ms-msdt",
            "JavaScript",
            "1app",
            "a b",
        ] {
            assert!(!is_app_scheme(bad), "{bad}");
        }
    }
}
