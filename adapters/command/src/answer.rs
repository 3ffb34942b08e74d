//! Composes an answer from a program's output.

use capstan_process::once::{Captured, Output};
use capstan_wire::Json;
use serde_json::json;

/// Maximum length of stderr in the text, in bytes.
const MAX_STDERR: usize = 8 * 1024;

/// The answer to a call whose program ended with `code`.
pub(crate) fn answer(code: i32, output: &Output) -> Json {
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let mut shown = stdout.clone();
    let errors = stderr.trim_end();
    if !errors.is_empty() {
        let cut = errors.get(..errors.floor_char_boundary(MAX_STDERR)).unwrap_or_default();
        part(&mut shown, "--- stderr ---");
        part(&mut shown, cut);
        if cut.len() < errors.len() {
            part(&mut shown, &format!("[{} more bytes on stderr]", errors.len() - cut.len()));
        }
    }
    if code != 0 {
        part(&mut shown, &format!("[exit code {code}]"));
    }
    let whole = json!({
        "content": [{ "type": "text", "text": shown }],
        "structuredContent": { "exitCode": code, "stdout": stdout, "stderr": stderr },
        "isError": code != 0,
    });
    Json::from_value(&whole).unwrap_or_else(|_| Json::empty_object())
}

/// A stream as text, with a note if its end is missing.
fn text(captured: &Captured) -> String {
    let mut text = String::from_utf8_lossy(&captured.bytes).into_owned();
    if captured.cut > 0 {
        part(&mut text, &format!("[{} more bytes were cut]", captured.cut));
    }
    text
}

/// Appends a line.
fn part(text: &mut String, line: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use capstan_process::once::End;
    use serde_json::Value;

    use super::*;

    fn answered(code: i32, stdout: &str, stderr: &str, cut: u64) -> Value {
        let captured = |text: &str, cut| Captured { bytes: text.as_bytes().to_vec(), cut };
        let output = Output {
            end: End::Code(code),
            stdout: captured(stdout, cut),
            stderr: captured(stderr, 0),
        };
        answer(code, &output).read().unwrap()
    }

    #[test]
    fn what_was_printed_is_the_answer_and_stderr_is_told_apart() {
        let told = answered(0, "out\n", "careful\n", 0);
        assert_eq!(told["content"][0]["text"], "out\n--- stderr ---\ncareful");
        assert_eq!(told["structuredContent"]["stdout"], "out\n");
        assert_eq!(told["structuredContent"]["stderr"], "careful\n");
        assert_eq!(told["isError"], false);
    }

    #[test]
    fn a_failure_says_its_exit_code() {
        let told = answered(3, "", "no\n", 0);
        assert_eq!(told["content"][0]["text"], "--- stderr ---\nno\n[exit code 3]");
        assert_eq!(
            (&told["isError"], &told["structuredContent"]["exitCode"]),
            (&json!(true), &json!(3))
        );
    }

    #[test]
    fn what_was_cut_is_counted() {
        assert_eq!(answered(0, "abc", "", 7)["content"][0]["text"], "abc\n[7 more bytes were cut]");
    }
}
