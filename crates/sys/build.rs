//! Builds the init program (`stub/main.rs`): a static executable of a few kilobytes without a libc, which `src/init`
//! embeds. It uses the compiler and target of this build, no network and no other file than its sources.

#![allow(clippy::disallowed_methods, reason = "a build script writes to OUT_DIR and runs the compiler")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// It waits in every created container, so its size is watched.
const LARGEST: usize = 12 * 1024;

fn main() -> Result<(), Box<dyn Error>> {
    for file in ["stub", "src/init", "build.rs"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let elf = out.join("init.elf");
    compile(&elf)?;
    let (base, entry, image) = flatten(&fs::read(&elf)?)?;
    if image.len() > LARGEST {
        return Err(format!("the init program has grown to {} bytes", image.len()).into());
    }
    fs::write(out.join("init.bin"), image)?;
    fs::write(
        out.join("init.rs"),
        format!("const BASE: u64 = {base:#x};\nconst ENTRY: u64 = {entry:#x};\n"),
    )?;
    Ok(())
}

fn compile(out: &Path) -> Result<(), Box<dyn Error>> {
    let mut rustc = Command::new(env::var("RUSTC")?);
    rustc.args(["stub/main.rs", "--crate-name", "init", "--edition", "2024", "--crate-type", "bin"]);
    rustc.args(["-C", "opt-level=s", "-C", "panic=abort", "-C", "lto=fat", "-C", "codegen-units=1"]);
    rustc.args(["-C", "strip=symbols", "-C", "relocation-model=static", "-C", "force-unwind-tables=no"]);
    rustc.args([
        "-C",
        "target-feature=+crt-static",
        "-C",
        "overflow-checks=off",
        "-C",
        "debug-assertions=off",
    ]);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    for arg in [
        "-nostdlib",
        "-nostartfiles",
        "-static",
        "-no-pie",
        "-Wl,--build-id=none",
        "-Wl,-z,norelro",
        "-Wl,-n",
    ] {
        rustc.arg("-C").arg(format!("link-arg={arg}"));
    }
    rustc.arg("--target").arg(env::var("TARGET")?).arg("-o").arg(out);
    let status = rustc.status()?;
    if !status.success() {
        return Err(format!("building the init program failed: {status}").into());
    }
    Ok(())
}

/// The loadable segments as they lie in memory, with room for an ELF header in front: (address, entry point, bytes).
fn flatten(elf: &[u8]) -> Result<(u64, u64, Vec<u8>), Box<dyn Error>> {
    let word = |at: usize| -> Result<u64, Box<dyn Error>> {
        Ok(u64::from_le_bytes(elf.get(at..at + 8).ok_or("truncated ELF file")?.try_into()?))
    };
    let half = |at: usize| -> Result<usize, Box<dyn Error>> {
        Ok(usize::from(u16::from_le_bytes(elf.get(at..at + 2).ok_or("truncated ELF file")?.try_into()?)))
    };
    let (entry, table) = (word(24)?, usize::try_from(word(32)?)?);
    let (size, count) = (half(54)?, half(56)?);
    let mut segments = Vec::new();
    for header in (0..count).map(|n| table + n * size) {
        const PT_LOAD: u64 = 1;
        if word(header)? & 0xffff_ffff == PT_LOAD {
            let (offset, address, length) = (word(header + 8)?, word(header + 16)?, word(header + 40)?);
            if word(header + 32)? != length {
                return Err("the init program has variables that start as zero; they would need a segment of their own".into());
            }
            let offset = usize::try_from(offset)?;
            let bytes = elf.get(offset..offset + usize::try_from(length)?).ok_or("truncated ELF file")?;
            segments.push((address, bytes));
        }
    }
    let lowest = segments.iter().map(|s| s.0).min().ok_or("no segment")?;
    let base = lowest & !0xfff;
    let mut image = Vec::new();
    for (address, bytes) in segments {
        let start = usize::try_from(address - base)?;
        if image.len() < start + bytes.len() {
            image.resize(start + bytes.len(), 0);
        }
        image[start..start + bytes.len()].copy_from_slice(bytes);
    }
    if lowest - base < 256 {
        return Err("no room for an ELF header in front of the first segment".into());
    }
    Ok((base, entry, image))
}
