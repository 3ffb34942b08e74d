//! Puts what runs in a gateway side by side in the binary, as `layout.txt` lists it
//! (docs/adr/0012-layout.md).

#![expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts by the environment")]

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=layout.txt");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|said| said == value);
    // There the pinned toolchain brings a linker of its own, which knows how.
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("PROFILE", "release") {
        let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        let layout = Path::new(&folder).join("layout.txt");
        println!("cargo::rustc-link-arg-bins=-Wl,--symbol-ordering-file={}", layout.display());
        println!("cargo::rustc-link-arg-bins=-Wl,--no-warn-symbol-ordering");
    }
}
