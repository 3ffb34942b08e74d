//! Converts usage lines to flags, positionals and subcommands.

use super::commands::is_name;
use super::usage::Usage;
use super::{MAX_FOUND, Positional, Program, Subcommand, add_flag};

/// Adds the content of the usage lines to that of the rest of the text.
pub(super) fn apply(program: &mut Program, usages: &[String]) {
    let read: Vec<Usage> = usages.iter().map(|usage| Usage::read(usage)).collect();
    let mut literals: Vec<&str> =
        read.iter().filter_map(|usage| usage.literal.as_deref()).collect();
    literals.sort_unstable();
    literals.dedup();
    // A single literal word may be the name of a value.
    let many = literals.len() > 1;
    let known: Vec<String> = program.subcommands.iter().map(|known| known.name.clone()).collect();
    let (mut own, mut of_subcommands) = (Vec::new(), Vec::new());
    let others = read.iter().any(|usage| usage.literal.is_none());
    for mut usage in read {
        for name in &usage.choices {
            add_subcommand(program, name, None);
        }
        match usage.literal.take() {
            Some(name) if many || known.contains(&name) => of_subcommands.push((name, usage)),
            // A special case of the other usages.
            Some(_) if others => {}
            Some(name) => {
                usage.put_first(name);
                own.push(usage);
            }
            None => own.push(usage),
        }
    }
    for (name, usage) in of_subcommands {
        let mut described = Program { has_usage: true, ..Program::default() };
        take(&mut described, vec![usage]);
        add_subcommand(program, &name, Some(described));
    }
    program.runs_alone = own.iter().any(|usage| !usage.wants_command && usage.choices.is_empty());
    take(program, own);
}

/// Parses the text after the name of a subcommand in a list: `start UNIT...`.
pub(super) fn arguments(text: &str) -> Program {
    let mut usage = Usage::read(text);
    let mut program = Program { has_usage: true, ..Program::default() };
    if let Some(name) = usage.literal.take() {
        usage.put_first(name);
    }
    take(&mut program, vec![usage]);
    program
}

fn add_subcommand(program: &mut Program, name: &str, usage: Option<Program>) {
    if !is_name(name) || program.subcommands.len() >= MAX_FOUND || name == "help" {
        return;
    }
    if !program.subcommands.iter().any(|known| known.name == name) {
        program.subcommands.push(Subcommand { name: name.to_owned(), ..Subcommand::default() });
    }
    let known = program.subcommands.iter_mut().find(|known| known.name == name);
    let (Some(known), Some(usage)) = (known, usage) else { return };
    match &mut known.usage {
        // Several lines of one subcommand: merge all flags, keep the longer list of arguments.
        Some(first) => {
            for flag in usage.flags {
                add_flag(&mut first.flags, flag);
            }
            let other = Shape::of(&usage.positionals, usage.separator);
            let ours = Shape::of(&first.positionals, first.separator);
            let chosen = ours.or_other(other);
            (first.positionals, first.separator) = (chosen.positionals, chosen.separator);
        }
        None => known.usage = Some(Box::new(usage)),
    }
}

/// Adds the content of usages to the program.
fn take(program: &mut Program, usages: Vec<Usage>) {
    let mut shape: Option<Shape> = None;
    for usage in usages {
        for flag in usage.flags {
            // A flag's own line is better than a usage line.
            if !program.flags.iter().any(|known| known.names.iter().any(|n| flag.names.contains(n)))
            {
                add_flag(&mut program.flags, flag);
            }
        }
        let next = Shape::of(&usage.positionals, usage.separator);
        shape = Some(match shape {
            Some(known) => known.or_other(next),
            None => next,
        });
    }
    if let Some(shape) = shape {
        program.positionals = shape.positionals;
        program.separator = shape.separator;
    }
}

/// The positionals of a usage.
struct Shape {
    positionals: Vec<Positional>,
    separator: Option<usize>,
}

// === impl Shape ===

impl Shape {
    fn of(positionals: &[Positional], separator: Option<usize>) -> Self {
        Self { positionals: positionals.to_vec(), separator }
    }

    /// The richer of two; an argument is required only if both require it in the same position.
    fn or_other(self, other: Self) -> Self {
        let rank = |shape: &Self| {
            let repeated = shape.positionals.iter().filter(|p| p.repeated).count();
            (shape.positionals.len(), repeated)
        };
        let (mut chosen, poorer) =
            if rank(&other) > rank(&self) { (other, self) } else { (self, other) };
        for (index, positional) in chosen.positionals.iter_mut().enumerate() {
            positional.required &= poorer.positionals.get(index).is_some_and(|p| p.required);
        }
        chosen
    }
}
