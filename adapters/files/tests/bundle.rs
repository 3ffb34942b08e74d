//! Bundles: what is unpacked, once and whole, and what of a hostile archive is refused.
#![expect(clippy::unwrap_used, reason = "clippy exempts test functions, not their helpers")]

use std::fs;
use std::io::{Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use capstan_files::{BundleFault, BundleLimits, unpack};
use tempfile::TempDir;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// A folder with a bundle in it, and room to unpack.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new(archive: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b.mcpb"), archive).unwrap();
        Self { folder }
    }

    fn bundle(&self) -> PathBuf {
        self.folder.path().join("b.mcpb")
    }

    fn bundles(&self) -> PathBuf {
        self.folder.path().join("cache/bundles")
    }

    fn unpack(&self) -> Result<PathBuf, BundleFault> {
        self.unpack_within(BundleLimits::default())
    }

    fn unpack_within(&self, limits: BundleLimits) -> Result<PathBuf, BundleFault> {
        unpack(&self.bundle(), &self.bundles(), limits).map_err(|error| error.reason)
    }

    /// Asserts that nothing was left behind, in the cache or beside it.
    fn is_untouched(&self) {
        let cache = fs::read_dir(self.bundles());
        assert_eq!(cache.map_or(0, Iterator::count), 0, "something is in the cache");
        let mut beside: Vec<PathBuf> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| !path.ends_with("cache"))
            .collect();
        beside.sort();
        assert_eq!(beside, [self.bundle()], "something is beside the bundle");
    }
}

/// Writes an archive that begins with a manifest.
fn archive(fill: impl FnOnce(&mut ZipWriter<Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    file(&mut writer, "manifest.json", b"{}");
    fill(&mut writer);
    writer.finish().unwrap().into_inner()
}

fn file(writer: &mut ZipWriter<Cursor<Vec<u8>>>, name: &str, content: &[u8]) {
    writer.start_file(name, SimpleFileOptions::default()).unwrap();
    writer.write_all(content).unwrap();
}

/// Replaces all occurrences of some bytes in an archive; names keep their length.
fn with(archive: &[u8], old: &str, new: &str) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let mut bytes = archive.to_vec();
    for at in 0..=bytes.len() - old.len() {
        let place = bytes.get_mut(at..at + old.len()).unwrap();
        if place == old.as_bytes() {
            place.copy_from_slice(new.as_bytes());
        }
    }
    bytes
}

#[test]
fn a_bundle_is_unpacked_once_into_a_private_folder_named_after_its_content() {
    let stage = Stage::new(&archive(|writer| {
        writer.add_directory("server/", SimpleFileOptions::default()).unwrap();
        file(writer, "server/run", b"#!/bin/sh\n");
        file(writer, "deep/er/x.js", b"1");
    }));
    let root = stage.unpack().unwrap();
    assert!(root.starts_with(stage.bundles()));
    assert_eq!(root.file_name().unwrap().len(), 64);
    assert_eq!(fs::read(root.join("deep/er/x.js")).unwrap(), b"1");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&root), mode(&root.join("server/run"))), (0o700, 0o700));

    fs::write(root.join("mark"), "").unwrap();
    assert_eq!(stage.unpack().unwrap(), root);
    assert!(root.join("mark").exists(), "it was unpacked again");
    assert_eq!(fs::read_dir(stage.bundles()).unwrap().count(), 1, "something was left behind");

    fs::write(stage.bundle(), archive(|writer| file(writer, "other", b"2"))).unwrap();
    assert_ne!(stage.unpack().unwrap(), root, "another content is another folder");
}

#[test]
fn many_at_a_time_end_up_with_one_whole_folder() {
    let stage = Stage::new(&archive(|writer| {
        for number in 0..50 {
            file(writer, &format!("f{number}"), &[7; 5000]);
        }
    }));
    let roots: Vec<PathBuf> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6).map(|_| scope.spawn(|| stage.unpack().unwrap())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for root in &roots {
        assert_eq!(root, &roots[0]);
        assert_eq!(fs::read_dir(root).unwrap().count(), 51);
    }
    assert_eq!(fs::read_dir(stage.bundles()).unwrap().count(), 1);
}

#[test]
fn a_signature_behind_the_archive_does_no_harm() {
    let mut bytes = archive(|_| {});
    bytes.extend_from_slice(b"MCPB_SIG_V1 and so on");
    Stage::new(&bytes).unpack().unwrap();
}

#[test]
fn no_path_leads_out_of_the_folder() {
    let plain = archive(|writer| file(writer, "aaaaaaaaaa", b"x"));
    for name in [
        "../aaaaaaa",
        "a/../../aa",
        "/aaaaaaaaa",
        "//aaaaaaaa",
        "..\\aaaaaaa",
        "C:\\aaaaaaa",
        "C:/aaaaaaa",
        "a//aaaaaaa",
        "./aaaaaaaa",
        "a/./aaaaaa",
        "aaaaaa/../",
        "aaaaaaa/..",
    ] {
        let stage = Stage::new(&with(&plain, "aaaaaaaaaa", name));
        let fault = stage.unpack().unwrap_err();
        assert!(matches!(fault, BundleFault::Escapes(_)), "{name}: {fault:?}");
        stage.is_untouched();
    }
}

#[test]
fn links_and_devices_are_refused() {
    let link = archive(|writer| {
        writer.add_symlink("link", "/etc", SimpleFileOptions::default()).unwrap();
        file(writer, "link/x", b"1");
    });
    let stage = Stage::new(&link);
    assert!(matches!(stage.unpack().unwrap_err(), BundleFault::Special(_)));
    stage.is_untouched();
    let pipe = archive(|writer| {
        let options = SimpleFileOptions::default().unix_permissions(0o644);
        writer.start_file("pipe", options).unwrap();
    });
    // The kind of a file stands in the upper half of its attributes.
    let mode = |kind: u32| (kind << 16).to_le_bytes();
    let (regular, fifo) = (mode(0o100_644), mode(0o010_644));
    let at = pipe.windows(4).rposition(|bytes| bytes == regular).unwrap();
    let mut bytes = pipe;
    bytes[at..at + 4].copy_from_slice(&fifo);
    let stage = Stage::new(&bytes);
    assert!(matches!(stage.unpack().unwrap_err(), BundleFault::Special(_)));
    stage.is_untouched();
}

#[test]
fn two_files_of_one_name_are_refused() {
    let bytes = archive(|writer| {
        file(writer, "aaaa", b"1");
        file(writer, "bbbb", b"2");
    });
    let stage = Stage::new(&with(&bytes, "bbbb", "aaaa"));
    assert!(matches!(stage.unpack().unwrap_err(), BundleFault::Twice(_)));
    stage.is_untouched();
    let bytes = archive(|writer| {
        file(writer, "aaaa", b"1");
        file(writer, "bbbb/c", b"2");
    });
    let stage = Stage::new(&with(&bytes, "bbbb/c", "aaaa/c"));
    assert!(stage.unpack().is_err(), "a file is no folder");
    stage.is_untouched();
}

#[test]
fn what_unpacks_to_too_much_is_refused_whatever_it_says_of_its_size() {
    let bomb = archive(|writer| file(writer, "zeros", &vec![0; 20 * 1024 * 1024]));
    let size = bomb.len();
    assert!(size < 100 * 1024, "{size}");
    let stage = Stage::new(&bomb);
    let fault = stage.unpack().unwrap_err();
    assert!(matches!(fault, BundleFault::TooMuch(_)), "{fault:?}");
    stage.is_untouched();

    // It claims to have a few bytes only.
    let mut liar = bomb;
    let real = (20_u32 * 1024 * 1024).to_le_bytes();
    for at in 0..liar.len() - 4 {
        if liar[at..at + 4] == real {
            liar[at..at + 4].copy_from_slice(&3_u32.to_le_bytes());
        }
    }
    let stage = Stage::new(&liar);
    assert!(stage.unpack().is_err());
    stage.is_untouched();
}

#[test]
fn the_bounds_hold_and_not_a_byte_sooner() {
    let bytes = archive(|writer| {
        file(writer, "a", b"12345");
        file(writer, "b", b"12345");
    });
    let fits = BundleLimits { archive: bytes.len() as u64, entries: 3, unpacked: 12, ratio: 100 };
    Stage::new(&bytes).unpack_within(fits).unwrap();
    for (limits, expected) in [
        (BundleLimits { archive: fits.archive - 1, ..fits }, "TooLarge"),
        (BundleLimits { entries: 2, ..fits }, "TooMany"),
        (BundleLimits { unpacked: 11, ..fits }, "TooMuch"),
    ] {
        let stage = Stage::new(&bytes);
        let fault = stage.unpack_within(limits).unwrap_err();
        assert!(format!("{fault:?}").starts_with(expected), "{fault:?}");
        stage.is_untouched();
    }
}

#[test]
fn what_is_no_bundle_is_refused() {
    let without = {
        let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
        file(&mut writer, "folder/manifest.json", b"{}");
        writer.finish().unwrap().into_inner()
    };
    assert!(matches!(Stage::new(&without).unpack().unwrap_err(), BundleFault::NoManifest));
    let whole = archive(|writer| file(writer, "x", &[1; 1000]));
    for bytes in [&b""[..], b"{}", b"PK\x05\x06", &whole[..whole.len() / 2], &whole[100..]] {
        let stage = Stage::new(bytes);
        let fault = stage.unpack().unwrap_err();
        let known = matches!(fault, BundleFault::NotAnArchive(_) | BundleFault::NoManifest);
        assert!(known, "{fault:?}");
        stage.is_untouched();
    }
    let stage = Stage::new(b"");
    fs::remove_file(stage.bundle()).unwrap();
    fs::create_dir(stage.bundle()).unwrap();
    assert!(matches!(stage.unpack().unwrap_err(), BundleFault::NotAFile));
}

#[test]
fn content_that_was_changed_is_noticed() {
    let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let bytes = archive(|writer| {
        writer.start_file("x", options).unwrap();
        writer.write_all(b"honest content").unwrap();
    });
    let stage = Stage::new(&with(&bytes, "honest", "forged"));
    assert!(matches!(stage.unpack().unwrap_err(), BundleFault::NotAnArchive(_)));
    stage.is_untouched();
}
