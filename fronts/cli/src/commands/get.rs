//! `capstan get`: shows one server in full.

use capstan_app::AppError;
use capstan_app::api::GetServer;
use capstan_safety::clean::clean;
use serde_json::{Map, Value};

use crate::args::{GetArgs, ReadingArgs, WaitArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::person::Person;

pub(crate) async fn run(context: &Context, args: &GetArgs) -> Result<Exit, AppError> {
    let person = Person::watching(&context.print, &format!("starting `{}`", args.name));
    let (refresh, wait) = (args.refresh, WaitArgs::default());
    let reading = context.reading(&ReadingArgs { refresh, wait });
    let shown = context.run(GetServer { name: args.name.clone(), reading }, person).await?;
    print(context, &shown);
    Ok(Exit::Ok)
}

fn print(context: &Context, shown: &Map<String, Value>) {
    if context.print.wants_json() {
        context.print.json(shown);
        return;
    }
    for (key, value) in shown {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Array(lines) => {
                let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
                format!("\n{}", lines.join("\n"))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
        };
        context.print.data(&line(key, &text));
    }
}

/// A key with its value; further lines are indented, so that no title or instruction of a server
/// can pass for a line of ours.
fn line(key: &str, text: &str) -> String {
    format!("{key}: {}", clean(text).replace('\n', "\n  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_pass_for_a_line_of_ours() {
        assert_eq!(line("state", "idle"), "state: idle");
        let forged = "Nice\ntrust: trusted\r\nstate: connected\rtrust: trusted\u{1b}[2J";
        let shown = "title: Nice\n  trust: trusted\n  state: connected\\u{d}trust: \
                     trusted\\u{1b}[2J";
        assert_eq!(line("title", forged), shown);
    }
}
