//! Writes the table of system call numbers out of the kernel's own tables.
//!
//! Its argument is a tree of the Linux sources, 6.11 or later (Debian: `linux-source-6.12`); of that only the
//! `syscall*.tbl` files are read. Their lines are `NUMBER ABI NAME [ENTRY POINT …]`.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// One column of the table: the kernel's file, and which ABIs of that file count.
///
/// For the architectures that share `scripts/syscall.tbl`, the ABIs are those of `arch/*/kernel/Makefile.syscalls`.
struct Column {
    name: &'static str,
    file: &'static str,
    abis: &'static [&'static str],
}

/// In the order that `Arch::column` of the seccomp crate counts in.
const COLUMNS: &[Column] = &[
    column("x86", "arch/x86/entry/syscalls/syscall_32.tbl", &["i386"]),
    column("x86_64", "arch/x86/entry/syscalls/syscall_64.tbl", &["common", "64"]),
    column("x32", "arch/x86/entry/syscalls/syscall_64.tbl", &["common", "x32"]),
    column("arm", "arch/arm/tools/syscall.tbl", &["common", "eabi"]),
    column("aarch64", GENERIC, &["common", "64", "renameat", "rlimit", "memfd_secret"]),
    column("loongarch64", GENERIC, &["common", "64"]),
    column("riscv64", GENERIC, &["common", "64", "riscv", "rlimit", "memfd_secret"]),
    column("mips", "arch/mips/kernel/syscalls/syscall_o32.tbl", &["common", "o32"]),
    column("mips64", "arch/mips/kernel/syscalls/syscall_n64.tbl", &["common", "n64"]),
    column("mips64n32", "arch/mips/kernel/syscalls/syscall_n32.tbl", &["common", "n32"]),
    column("ppc", "arch/powerpc/kernel/syscalls/syscall.tbl", &["common", "nospu", "32"]),
    column("ppc64", "arch/powerpc/kernel/syscalls/syscall.tbl", &["common", "nospu", "64"]),
    column("s390", "arch/s390/kernel/syscalls/syscall.tbl", &["common", "32"]),
    column("s390x", "arch/s390/kernel/syscalls/syscall.tbl", &["common", "64"]),
];

const GENERIC: &str = "scripts/syscall.tbl";
const X86_64: usize = 1;
const X32: usize = 2;
const ARM: usize = 3;

/// Numbers since 424 (Linux 5.1) are the same on all architectures, so those newer than the tree can be told.
const NEWER: &[(u16, &str)] = &[
    (463, "setxattrat"),       // 6.13
    (464, "getxattrat"),       // 6.13
    (465, "listxattrat"),      // 6.13
    (466, "removexattrat"),    // 6.13
    (467, "open_tree_attr"),   // 6.15
    (468, "file_getattr"),     // 6.17
    (469, "file_setattr"),     // 6.17
    (470, "listns"),           // 6.19
    (471, "rseq_slice_yield"), // 7.0
];

/// ARM's private calls (`__ARM_NR_*` of asm/unistd.h): their low word, for their numbers begin at 0xf0000. It can't
/// be mistaken for a number out of a table, since those stay below `ARM_PRIVATE`.
const ARM_CALLS: &[(u16, &str)] = &[
    (ARM_PRIVATE | 1, "breakpoint"),
    (ARM_PRIVATE | 2, "cacheflush"),
    (ARM_PRIVATE | 3, "usr26"),
    (ARM_PRIVATE | 4, "usr32"),
    (ARM_PRIVATE | 5, "set_tls"),
    (ARM_PRIVATE | 6, "get_tls"),
];

/// As `ARM_PRIVATE` of the seccomp crate.
const ARM_PRIVATE: u16 = 0xf000;

/// Newer than the tree and on one architecture only.
const NEWER_ALONE: &[(usize, u16, &str)] = &[(X86_64, 336, "uprobe"), (X32, 336, "uprobe")]; // 6.18

type Table = BTreeMap<String, [Option<u16>; COLUMNS.len()]>;

const fn column(name: &'static str, file: &'static str, abis: &'static [&'static str]) -> Column {
    Column { name, file, abis }
}

/// Runs the task.
pub fn run(args: &[String]) -> Result<(), Box<dyn Error>> {
    let [linux] = args else {
        return Err("expected one argument, the folder of the Linux sources".into());
    };
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/seccomp/src/syscalls/table.rs");
    let text = render(&read_tables(Path::new(linux))?)?;

    let fresh: PathBuf = target.with_extension("rs.new");
    OpenOptions::new().write(true).create_new(true).open(&fresh)?.write_all(text.as_bytes())?;
    fs::rename(&fresh, &target)?;
    Ok(())
}

fn read_tables(linux: &Path) -> Result<Table, Box<dyn Error>> {
    let mut table = Table::new();
    for (index, column) in COLUMNS.iter().enumerate() {
        let path = linux.join(column.file);
        let text =
            fs::read_to_string(&path).map_err(|error| format!("reading {}: {error}", path.display()))?;
        for (number, name) in entries(&text, column.abis)? {
            set(&mut table, &name, index, number)?;
        }
        for &(number, name) in NEWER {
            set(&mut table, name, index, number)?;
        }
    }
    for &(number, name) in ARM_CALLS {
        set(&mut table, name, ARM, number)?;
    }
    for &(index, number, name) in NEWER_ALONE {
        set(&mut table, name, index, number)?;
    }
    Ok(table)
}

/// The calls of a table file that belong to one of `abis`.
fn entries(text: &str, abis: &[&str]) -> Result<Vec<(u16, String)>, Box<dyn Error>> {
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_ascii_whitespace();
        let (Some(number), Some(abi), Some(name)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        // Holes of the MIPS tables have entries of their own: `unused18`, `reserved177`.
        let hole = ["unused", "reserved"].iter().any(|hole| {
            name.strip_prefix(hole).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
        });
        if abis.contains(&abi) && !hole {
            found.push((number.parse().map_err(|error| format!("{line:?}: {error}"))?, name.to_owned()));
        }
    }
    if found.len() < 250 {
        return Err(format!("only {} calls of {abis:?} found", found.len()).into());
    }
    Ok(found)
}

fn set(table: &mut Table, name: &str, column: usize, number: u16) -> Result<(), Box<dyn Error>> {
    let row = table.entry(name.to_owned()).or_insert([None; COLUMNS.len()]);
    let cell = row.get_mut(column).ok_or("no such column")?;
    match cell.replace(number) {
        Some(old) if old != number => Err(format!("{name} is both {old} and {number}").into()),
        _ => Ok(()),
    }
}

fn render(table: &Table) -> Result<String, Box<dyn Error>> {
    let mut text = String::from("// Generated by `cargo run -p xtask -- syscalls`; do not edit.\n\n");
    text.push_str(
        "/// No number: the architecture does not have the call.\npub const NO: u16 = u16::MAX;\n\n",
    );
    text.push_str("/// Names in byte order, with the numbers on ");
    let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    writeln!(text, "{}.", names.join(", "))?;
    text.push_str("#[rustfmt::skip]\n");
    text.push_str("#[allow(clippy::large_const_arrays, reason = \"only evaluated at compile time\")]\n");
    writeln!(text, "pub const TABLE: [(&str, [u16; {}]); {}] = [", COLUMNS.len(), table.len())?;
    for (name, row) in table {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| cell.map_or_else(|| "NO".to_owned(), |number| number.to_string()))
            .collect();
        writeln!(text, "    (\"{name}\", [{}]),", cells.join(", "))?;
    }
    text.push_str("];\n");
    Ok(text)
}
