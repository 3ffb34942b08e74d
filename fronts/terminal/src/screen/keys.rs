//! Keys by their meaning, whatever a terminal sends for them.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Char(char),
    Enter,
    NewLine,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    Up,
    Down,
    Home,
    End,
    PageUp,
    PageDown,
    First,
    Last,
    DeleteWord,
    DeleteToStart,
    DeleteToEnd,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Ctrl-L.
    Redraw,
}

/// The meaning of a key; `None` if it has none here.
pub(crate) fn read(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    let alt = event.modifiers.contains(KeyModifiers::ALT);
    let shift = event.modifiers.contains(KeyModifiers::SHIFT);
    // The pair has no variants of its own, so that keys of other keyboards need no arms.
    Some(match (event.code, control, alt) {
        (KeyCode::Enter, false, false) if shift => Key::NewLine,
        (KeyCode::Enter, _, true) | (KeyCode::Char('j'), true, false) => Key::NewLine,
        (KeyCode::Enter, ..) => Key::Enter,
        (KeyCode::Esc, ..) => Key::Esc,
        (KeyCode::Tab, ..) if shift => Key::BackTab,
        (KeyCode::Tab, ..) => Key::Tab,
        (KeyCode::BackTab, ..) => Key::BackTab,
        (KeyCode::Backspace, _, true) | (KeyCode::Char('w'), true, false) => Key::DeleteWord,
        (KeyCode::Backspace, ..) | (KeyCode::Char('h'), true, false) => Key::Backspace,
        (KeyCode::Delete, ..) => Key::Delete,
        (KeyCode::Left, false, false) | (KeyCode::Char('b'), true, false) => Key::Left,
        (KeyCode::Right, false, false) | (KeyCode::Char('f'), true, false) => Key::Right,
        (KeyCode::Left, ..) | (KeyCode::Char('b'), false, true) => Key::WordLeft,
        (KeyCode::Right, ..) | (KeyCode::Char('f'), false, true) => Key::WordRight,
        (KeyCode::Up, ..) | (KeyCode::Char('p'), true, false) => Key::Up,
        (KeyCode::Down, ..) | (KeyCode::Char('n'), true, false) => Key::Down,
        (KeyCode::Home, true, _) => Key::First,
        (KeyCode::End, true, _) => Key::Last,
        (KeyCode::Home, ..) | (KeyCode::Char('a'), true, false) => Key::Home,
        (KeyCode::End, ..) | (KeyCode::Char('e'), true, false) => Key::End,
        (KeyCode::PageUp, ..) => Key::PageUp,
        (KeyCode::PageDown, ..) => Key::PageDown,
        (KeyCode::Char('u'), true, false) => Key::DeleteToStart,
        (KeyCode::Char('k'), true, false) => Key::DeleteToEnd,
        (KeyCode::Char('c'), true, false) => Key::Interrupt,
        (KeyCode::Char('d'), true, false) => Key::EndOfInput,
        (KeyCode::Char('l'), true, false) => Key::Redraw,
        (KeyCode::Char(c), false, false) => Key::Char(c),
        _ => return None,
    })
}
