//! The files that programs need in order to run: the system, interpreters, and the program itself.
//!
//! Nothing here may contain secrets of the user: no folder of settings, no folder of data.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Folders and files of the system that every sandbox may read.
///
/// `/etc` is listed by file: as root, a program could read all of it.
pub(super) const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/gnu/store",
    "/run/current-system/sw",
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/profile",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/static",
    "/etc/terminfo",
    "/etc/timezone",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
    "/dev/random",
    "/dev/urandom",
];

/// Devices that every sandbox may read and write.
pub(super) const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full"];

/// Folders of version managers and package managers below the home folder that contain only
/// programs.
const MANAGED: &[&str] = &[
    ".asdf",
    ".bun/bin",
    ".bun/install/global",
    ".deno/bin",
    ".local/pipx/venvs",
    ".local/share/fnm",
    ".local/share/mise/installs",
    ".local/share/mise/shims",
    ".local/share/pipx/venvs",
    ".local/share/pnpm",
    ".local/share/uv/python",
    ".local/share/uv/tools",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup/toolchains",
    ".rye/py",
    ".sdkman/candidates",
    ".volta",
];

/// Entries beside `bin` in the folder of an installed program, such as that of a Python environment.
const BESIDE_BIN: &[&str] = &["lib", "lib64", "libexec", "include", "pyvenv.cfg"];

/// The folder of the packages of Node, each of which reads the others.
const NODE_PACKAGES: &str = "node_modules";

/// The most interpreters of interpreters.
const MAX_INTERPRETERS: usize = 4;

/// The longest first line of a script, in bytes.
const MAX_FIRST_LINE: u64 = 256;

/// The files of a program, and of all that it may start by name.
pub(super) fn programs(program: &Path, search_path: Option<&str>, home: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in search_path.unwrap_or_default().split(':').map(Path::new) {
        install(folder, home, &mut found);
    }
    let mut file = Some(program.to_owned());
    for _ in 0..MAX_INTERPRETERS {
        let Some(program) = file.take() else { break };
        // The name in `PATH` often is a link to a file in the program's own folder.
        for file in [Some(program.clone()), program.canonicalize().ok()].into_iter().flatten() {
            if let Some(folder) = file.parent() {
                install(folder, home, &mut found);
            }
            let packages = file.ancestors().filter(|folder| folder.ends_with(NODE_PACKAGES));
            found.extend(packages.last().map(Path::to_owned));
            found.push(file);
        }
        file = interpreter(&program, search_path);
    }
    found.extend(MANAGED.iter().map(|folder| home.join(folder)));
    found.sort_unstable();
    found.dedup();
    found
}

/// The program that runs a script, by its first line.
fn interpreter(script: &Path, search_path: Option<&str>) -> Option<PathBuf> {
    let mut start = Vec::new();
    File::open(script).ok()?.take(MAX_FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.split(|byte| *byte == b'\n').next()?.strip_prefix(b"#!")?;
    let mut words = str::from_utf8(line).ok()?.split_ascii_whitespace();
    let program = Path::new(words.next()?);
    if program.file_name()? != "env" {
        return Some(program.to_owned());
    }
    let name = words.find(|word| !word.starts_with('-'))?;
    which::which_in(name, search_path, "/").ok()
}

/// Adds a folder of programs and, if it is a `bin`, the libraries beside it.
fn install(folder: &Path, home: &Path, found: &mut Vec<PathBuf>) {
    // The home folder, or one above it, would open everything in it.
    if !folder.is_absolute() || home.starts_with(folder) {
        return;
    }
    // A link to another place, such as `/bin`, is followed.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if home.starts_with(&folder) {
        return;
    }
    if folder.ends_with("bin")
        && let Some(prefix) = folder.parent()
    {
        found.extend(BESIDE_BIN.iter().map(|beside| prefix.join(beside)));
    }
    if is_hidden_settings(&folder, home) {
        return;
    }
    found.push(folder);
}

/// True for a folder directly below home whose name begins with a dot, such as `~/.ssh`: settings.
fn is_hidden_settings(folder: &Path, home: &Path) -> bool {
    let Ok(below) = folder.strip_prefix(home) else { return false };
    let mut parts = below.components();
    let first =
        parts.next().is_some_and(|part| part.as_os_str().to_string_lossy().starts_with('.'));
    first && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opens(program: &str, search_path: &str, file: &str) -> bool {
        let read = programs(Path::new(program), Some(search_path), Path::new("/home/me"));
        read.iter().any(|folder| Path::new(file).starts_with(folder))
    }

    #[test]
    fn a_program_its_libraries_and_the_programs_in_the_path_can_be_read() {
        for file in [
            "/srv/app/bin/server",
            "/srv/app/lib/python3/site.py",
            "/home/me/.local/bin/uvx",
            "/home/me/.local/share/uv/python/3.12/bin/python",
            "/home/me/.nvm/versions/node/v22/bin/node",
            "/home/me/tools/run",
        ] {
            let path = "/usr/bin:/home/me/.local/bin:/home/me/tools";
            assert!(opens("/srv/app/bin/server", path, file), "{file}");
        }
    }

    #[test]
    fn the_interpreter_of_a_script_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
        for name in ["venv/bin", "python/bin", "node/bin"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::write(at("python/bin/python3.11"), "").unwrap();
        std::os::unix::fs::symlink(at("python/bin/python3.11"), at("venv/bin/python")).unwrap();
        let script = format!("#!{}\n", at("venv/bin/python").display());
        std::fs::write(at("venv/bin/server"), script).unwrap();
        let server = at("venv/bin/server");
        for file in [
            "python/bin/python3.11",
            "python/lib/python3.11/os.py",
            "venv/lib/x.py",
            "venv/pyvenv.cfg",
        ] {
            assert!(
                opens(server.to_str().unwrap(), "/usr/bin", at(file).to_str().unwrap()),
                "{file}"
            );
        }
        assert!(!opens(
            server.to_str().unwrap(),
            "/usr/bin",
            at("node/bin/node").to_str().unwrap()
        ));
    }

    #[test]
    fn a_package_of_node_reads_the_packages_beside_it() {
        let program = "/srv/app/node_modules/a/node_modules/b/dist/index.js";
        assert!(opens(program, "/usr/bin", "/srv/app/node_modules/c/package.json"));
        assert!(!opens(program, "/usr/bin", "/srv/app/.env"));
    }

    #[test]
    fn no_entry_of_the_path_opens_the_home_folder_or_settings_in_it() {
        for path in ["/home/me", "/home", "/", "", ".", "/home/me/.ssh", "/home/me/.cargo/bin"] {
            for file in [
                "/home/me/.ssh/id_ed25519",
                "/home/me/.aws/credentials",
                "/home/me/.cargo/credentials.toml",
                "/home/me/.config/gh/hosts.yml",
                "/home/me/.local/share/keyrings/login.keyring",
                "/home/me/notes.txt",
                "/etc/shadow",
            ] {
                assert!(!opens("/usr/bin/node", path, file), "{path} {file}");
            }
        }
    }

    #[test]
    fn the_files_of_the_system_are_not_those_with_secrets() {
        for secret in [
            "/etc/shadow",
            "/etc/ssl/private/key.pem",
            "/etc/ssh/ssh_host_rsa_key",
            "/var/run/docker.sock",
            "/dev/mem",
            "/dev/sda",
        ] {
            let is_open =
                SYSTEM.iter().chain(DEVICES).any(|open| Path::new(secret).starts_with(open));
            assert!(!is_open, "{secret}");
        }
    }
}
