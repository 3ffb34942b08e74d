//! Decides which environment variables a server's process may get.
//!
//! **Invariant:** a variable is passed on because it is listed here or declared for that server,
//! never because it happens to be set. A secret that is not declared is not passed on.

/// Variables that control the start of a program or of its interpreter.
const HIJACKING: &[&str] = &[
    // Shells.
    "BASH_ENV",
    "BASHOPTS",
    "CDPATH",
    "ENV",
    "GLOBIGNORE",
    "IFS",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "ZDOTDIR",
    // Interpreters and their package managers.
    "_JAVA_OPTIONS",
    "BUN_INSTALL",
    "CLASSPATH",
    "COR_PROFILER",
    "CORECLR_PROFILER",
    "DOTNET_STARTUP_HOOKS",
    "ERL_FLAGS",
    "GEM_HOME",
    "GEM_PATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LUA_INIT",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PHP_INI_SCAN_DIR",
    "PHPRC",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "RUBYLIB",
    "RUBYOPT",
    // The C library and TLS.
    "GCONV_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "HOSTALIASES",
    "LOCPATH",
    "NLSPATH",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "RESOLV_HOST_CONF",
    "SSLKEYLOGFILE",
    // Programs that other programs start.
    "BROWSER",
    "EDITOR",
    "GIT_ASKPASS",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "PAGER",
    "SSH_ASKPASS",
    "VISUAL",
    // Windows.
    "APPINIT_DLLS",
];

/// Families of such variables, by the start of their names.
const HIJACKING_PREFIXES: &[&str] =
    &["LD_", "DYLD_", "BASH_FUNC_", "MALLOC_", "GIT_CONFIG_", "NPM_CONFIG_NODE_OPTIONS"];

/// Variables that a process needs, and those whose names show that they carry no secret.
const PASSING: &[&str] = &[
    "COLORTERM",
    "DISPLAY",
    "HOME",
    "HOSTNAME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "WAYLAND_DISPLAY",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
    // Proxies, in both cases that programs use.
    "ALL_PROXY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Further variables for Windows, where names are case-insensitive.
const PASSING_ON_WINDOWS: &[&str] = &[
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// True if this variable could make the process run something else than its command.
///
/// The comparison ignores case, because some systems do.
pub fn hijacks(name: &str) -> bool {
    let upper = name.trim().to_ascii_uppercase();
    HIJACKING.contains(&upper.as_str())
        || HIJACKING_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
}

/// True if a server gets this variable without a declaration.
pub fn passes_by_default(name: &str) -> bool {
    let windows = || PASSING_ON_WINDOWS.contains(&name.to_ascii_uppercase().as_str());
    PASSING.contains(&name) || name.starts_with("LC_") || windows()
}

/// True if a server gets this variable with this value without a declaration.
pub fn passes(name: &str, value: &str) -> bool {
    // A proxy URL may contain a password: `http://user:password@proxy`, also without a scheme. A
    // URL without a password needs no `@`.
    let is_proxy = name.to_ascii_lowercase().ends_with("_proxy");
    passes_by_default(name) && !(is_proxy && value.contains('@'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_load_code_into_a_process_are_refused_in_any_case() {
        let refused = [
            "LD_PRELOAD",
            "ld_preload",
            "Ld_Audit",
            "LD_ANYTHING_NEW",
            "DYLD_INSERT_LIBRARIES",
            "BASH_FUNC_ls%%",
            "BASH_ENV",
            "ENV",
            "NODE_OPTIONS",
            "Node_Path",
            "PYTHONPATH",
            "PYTHONSTARTUP",
            "PYTHONHOME",
            "RUBYOPT",
            "PERL5LIB",
            "JAVA_TOOL_OPTIONS",
            "_JAVA_OPTIONS",
            "GLIBC_TUNABLES",
            "GCONV_PATH",
            "CDPATH",
            "GLOBIGNORE",
            "GIT_SSH_COMMAND",
            "SSLKEYLOGFILE",
            "MALLOC_CHECK_",
            " LD_PRELOAD ",
        ];
        for name in refused {
            assert!(hijacks(name), "{name:?} was accepted");
            assert!(!passes_by_default(name), "{name:?} is passed on");
        }
    }

    #[test]
    fn ordinary_variables_may_be_declared() {
        let fine = [
            "PATH",
            "LINEAR_API_KEY",
            "NODE_ENV",
            "NODE_EXTRA_CA_CERTS",
            "PYTHONUNBUFFERED",
            "ENVIRONMENT",
            "OLD_VALUE",
            "GIT_AUTHOR_NAME",
            "REQUESTS_CA_BUNDLE",
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "",
        ];
        for name in fine {
            assert!(!hijacks(name), "{name:?} was refused");
        }
    }

    #[test]
    fn secrets_and_agents_are_never_passed_on_by_themselves() {
        let kept_back = [
            "GITHUB_TOKEN",
            "AWS_ACCESS_KEY_ID",
            "OPENAI_API_KEY",
            "DATABASE_URL",
            "SSH_AUTH_SOCK",
            "DBUS_SESSION_BUS_ADDRESS",
            "GPG_AGENT_INFO",
            "KUBECONFIG",
            "NPM_TOKEN",
            "path",
            "PATH_TOKEN",
            "HOME_SECRET",
            "CAPSTAN_LOG",
            // Holes 13: these variables decide which certificates are trusted.
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "CURL_CA_BUNDLE",
            "NODE_EXTRA_CA_CERTS",
            // Our values do not describe the working directory of the server.
            "PWD",
            "OLDPWD",
            "",
        ];
        for name in kept_back {
            assert!(!passes_by_default(name), "{name:?} is passed on");
        }
    }

    #[test]
    fn the_address_of_a_proxy_stays_where_it_is_when_it_has_a_password() {
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"] {
            for value in [
                "http://user:pw@proxy:8080",
                "http://user@proxy",
                "user:pw@proxy:8080",
                "socks5h://:pw@[::1]:1080/",
                "HTTP://u:p%40w@proxy",
                "http://u:p/w@proxy",
            ] {
                assert!(!passes(name, value), "{name}={value} is passed on");
            }
            for value in ["http://proxy:8080", "proxy:8080", "socks5h://[::1]:1080", ""] {
                assert!(passes(name, value), "{name}={value} is kept back");
            }
        }
        assert!(passes("NO_PROXY", "localhost,.example.org"));
        assert!(passes("HOME", "/home/a@b"));
        assert!(!passes("GITHUB_TOKEN", "x"));
        assert!(!passes("FTP_PROXY", "proxy"));
    }

    #[test]
    fn what_a_process_needs_to_run_is_passed_on() {
        let passed =
            ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "https_proxy", "NO_PROXY", "SystemRoot"];
        for name in passed {
            assert!(passes_by_default(name), "{name:?} is kept back");
        }
    }
}
