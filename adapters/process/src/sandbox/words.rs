//! The settings of a sandbox as words on the keeper's command line.
//!
//! They contain paths and numbers, and nothing secret: a command line can be read by every user.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use super::limits::Limits;

/// The word that announces a sandbox.
const SANDBOX: &str = "sandbox";

/// The word between the keeper's own arguments and the command.
pub(crate) const END: &str = "--";

/// The settings that the keeper needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    /// Files and folders that may be read.
    pub(crate) read: Vec<PathBuf>,
    /// Files and folders that may be changed.
    pub(crate) write: Vec<PathBuf>,
    /// The socket of the proxy.
    pub(crate) socket: Option<PathBuf>,
    /// The limits of resources.
    pub(crate) limits: Limits,
}

// === impl Words ===

impl Words {
    /// The words, without the one that ends them.
    pub(crate) fn write(&self) -> Vec<OsString> {
        let path = |key: &str, path: &PathBuf| {
            let mut word = OsString::from(key);
            word.push("=");
            word.push(path);
            word
        };
        let mut words = vec![OsString::from(SANDBOX)];
        words.extend(self.read.iter().map(|one| path("read", one)));
        words.extend(self.write.iter().map(|one| path("write", one)));
        words.extend(self.socket.iter().map(|one| path("socket", one)));
        let Limits { processes, memory, open_files, file_size } = self.limits;
        let numbers = [
            ("processes", processes),
            ("memory", memory),
            ("open_files", open_files),
            ("file_size", file_size),
        ];
        let numbers = numbers.into_iter().filter_map(|(key, value)| Some((key, value?)));
        words.extend(numbers.map(|(key, value)| OsString::from(format!("{key}={value}"))));
        words
    }

    /// Reads the words up to [`END`]; `None` if there is no sandbox.
    ///
    /// # Errors
    /// If a word is unknown.
    pub(crate) fn read(words: &mut impl Iterator<Item = OsString>) -> io::Result<Option<Self>> {
        let mut settings: Option<Self> = None;
        for word in words {
            if word == END {
                return Ok(settings);
            }
            if word == SANDBOX {
                settings.get_or_insert_default();
                continue;
            }
            let Some(settings) = &mut settings else { break };
            settings.set(&word)?;
        }
        Err(io::Error::other("the keeper is started by capstan itself"))
    }

    fn set(&mut self, word: &OsStr) -> io::Result<()> {
        let unknown =
            || io::Error::other(format!("unknown setting of a sandbox: {}", word.display()));
        let bytes = word.as_bytes();
        let at = bytes.iter().position(|byte| *byte == b'=').ok_or_else(unknown)?;
        let (key, value) = bytes.split_at_checked(at).ok_or_else(unknown)?;
        let value = value.get(1..).ok_or_else(unknown)?;
        let path = || PathBuf::from(OsString::from_vec(value.to_vec()));
        let number = || {
            let text = str::from_utf8(value).map_err(|_| unknown())?;
            text.parse::<u64>().map_err(|_| unknown())
        };
        match key {
            b"read" => self.read.push(path()),
            b"write" => self.write.push(path()),
            b"socket" => self.socket = Some(path()),
            b"processes" => self.limits.processes = Some(number()?),
            b"memory" => self.limits.memory = Some(number()?),
            b"open_files" => self.limits.open_files = Some(number()?),
            b"file_size" => self.limits.file_size = Some(number()?),
            _ => return Err(unknown()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> io::Result<Option<Words>> {
        Words::read(&mut words.iter().map(OsString::from))
    }

    #[test]
    fn settings_arrive_as_they_were_sent_and_the_command_follows() {
        let sent = Words {
            read: vec!["/a=b".into(), OsString::from_vec(b"/not-\xff-utf8".to_vec()).into()],
            write: vec!["/--".into()],
            socket: Some("/s".into()),
            limits: Limits {
                processes: Some(3),
                memory: Some(1),
                open_files: Some(9),
                file_size: None,
            },
        };
        let mut words = sent.write().into_iter().chain([END.into(), "/bin/true".into()]);
        assert_eq!(Words::read(&mut words).unwrap(), Some(sent));
        assert_eq!(words.next(), Some("/bin/true".into()));
        assert_eq!(read(&["--", "x"]).unwrap(), None);
    }

    #[test]
    fn a_word_that_is_not_understood_is_refused() {
        for words in [
            &["sandbox", "reed=/a", "--"][..],
            &["sandbox", "read", "--"],
            &["sandbox", "processes=many", "--"],
            &["sandbox", "read=/a"],
            &["read=/a", "--"],
            &["/bin/true"],
            &[],
        ] {
            assert!(read(words).is_err(), "{words:?}");
        }
    }
}
