//! What the first bytes of a program say about why it cannot be executed, see execve(2) and elf(5).

/// Bytes of a file that are enough to tell: what execve(2) itself reads of a script, and where linkers put the
/// headers of ELF files.
pub const HEAD: usize = 1024;

/// A program's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// `#!` and an interpreter.
    Script {
        /// Its path, without a carriage return at the end.
        interpreter: String,
        /// The line ends as on Windows, which makes the carriage return part of the name.
        carriage_return: bool,
    },
    /// An ELF file.
    Elf {
        /// `e_machine`.
        machine: u16,
        /// The dynamic linker that it asks for.
        interpreter: Option<String>,
    },
    /// Nothing at all.
    Empty,
    /// Something else.
    Unknown,
}

/// Reads the first bytes of a program.
pub fn inspect(head: &[u8]) -> Format {
    match head {
        [] => Format::Empty,
        [b'#', b'!', line @ ..] => script(line),
        [0x7f, b'E', b'L', b'F', ..] => elf(head).unwrap_or(Format::Unknown),
        _ => Format::Unknown,
    }
}

fn script(line: &[u8]) -> Format {
    let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = line.iter().position(|byte| !blank(byte)).unwrap_or(line.len());
    let word = line.get(start..).unwrap_or_default().split(blank).next().unwrap_or_default();
    let (word, carriage_return) = match word {
        [word @ .., b'\r'] => (word, true),
        word => (word, false),
    };
    Format::Script { interpreter: String::from_utf8_lossy(word).into_owned(), carriage_return }
}

fn elf(head: &[u8]) -> Option<Format> {
    const PT_INTERP: u64 = 3;
    let wide = *head.get(4)? == 2;
    let little = *head.get(5)? == 1;
    let number = |at: u64, bytes: usize| {
        let at = usize::try_from(at).ok()?;
        let raw = head.get(at..at.checked_add(bytes)?)?;
        let digits = raw.iter().map(|byte| u64::from(*byte));
        Some(if little {
            digits.rev().fold(0, |n, digit| n << 8 | digit)
        } else {
            digits.fold(0, |n, digit| n << 8 | digit)
        })
    };
    let machine = u16::try_from(number(18, 2)?).ok()?;
    // Places of e_phoff, e_phentsize and e_phnum; within a header, of p_offset and p_filesz.
    let (word, table, size, count, offset, length) =
        if wide { (8, 32, 54, 56, 8, 32) } else { (4, 28, 42, 44, 4, 16) };
    let interpreter = || {
        let (table, size, count) = (number(table, word)?, number(size, 2)?, number(count, 2)?);
        let entries = (0..count).map_while(|index| table.checked_add(index.checked_mul(size)?));
        let entry = entries.into_iter().find(|at| number(*at, 4) == Some(PT_INTERP))?;
        let start = usize::try_from(number(entry.checked_add(offset)?, word)?).ok()?;
        let length = usize::try_from(number(entry.checked_add(length)?, word)?).ok()?;
        let text = head.get(start..start.checked_add(length)?)?;
        let text = text.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    Some(Format::Elf { machine, interpreter: interpreter() })
}

/// Whether this machine can run programs for `machine` without an emulator. 32-bit ones of the same family count: the
/// kernel as a rule runs them too.
pub fn is_native(machine: u16) -> bool {
    let family: &[u16] = match std::env::consts::ARCH {
        "x86_64" | "x86" => &[3, 62],
        "aarch64" | "arm" => &[40, 183],
        "riscv64" => &[243],
        "powerpc64" => &[20, 21],
        "s390x" => &[22],
        "loongarch64" => &[258],
        _ => return true,
    };
    family.contains(&machine)
}

/// The name of an ELF machine.
pub fn machine_name(machine: u16) -> String {
    let name = match machine {
        3 => "i386",
        8 => "mips",
        20 => "ppc",
        21 => "ppc64",
        22 => "s390x",
        40 => "arm",
        62 => "x86_64",
        183 => "aarch64",
        243 => "riscv64",
        258 => "loongarch64",
        other => return format!("ELF machine {other}"),
    };
    name.to_owned()
}

/// Why execve(2) refuses a file that is there: what to tell the user. `None` where the file looks as it should.
pub fn advice(program: &str, format: &Format, errno: rustix::io::Errno) -> Option<String> {
    use rustix::io::Errno;
    let here = std::env::consts::ARCH;
    Some(match (format, errno) {
        (Format::Script { carriage_return: true, interpreter }, Errno::NOENT) => format!(
            "the first line of {program} ends with a carriage return, so the kernel looks for \"{interpreter}\\r\": save the script with Unix line ends (dos2unix)"
        ),
        (
            Format::Script { interpreter, .. } | Format::Elf { interpreter: Some(interpreter), .. },
            Errno::NOENT,
        ) => {
            format!("{program} is there, but not the interpreter that it names: {interpreter}")
        }
        (Format::Script { interpreter, .. }, Errno::ACCESS) => {
            format!(
                "{interpreter}, which {program} names as its interpreter, cannot be executed by the container's user"
            )
        }
        (Format::Elf { machine, .. }, Errno::NOEXEC) if !is_native(*machine) => format!(
            "{program} is built for {}, this machine is {here}: take the image for {here}, or register an emulator with binfmt_misc",
            machine_name(*machine)
        ),
        (Format::Empty, Errno::NOEXEC) => format!("{program} is empty"),
        (Format::Unknown, Errno::NOEXEC) => {
            format!("{program} is neither an ELF program nor a script with a #! line")
        }
        (Format::Script { interpreter, .. }, Errno::NOEXEC) if interpreter.is_empty() => {
            format!("the #! line of {program} names no interpreter")
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    fn script(interpreter: &str, carriage_return: bool) -> Format {
        Format::Script { interpreter: interpreter.to_owned(), carriage_return }
    }

    #[test]
    fn scripts_name_their_interpreter() {
        assert_eq!(inspect(b"#!/bin/sh\necho"), script("/bin/sh", false));
        assert_eq!(inspect(b"#! \t/usr/bin/env python3\n"), script("/usr/bin/env", false));
        assert_eq!(inspect(b"#!/bin/sh\r\necho\r\n"), script("/bin/sh", true));
        assert_eq!(inspect(b"#!/bin/bash -e\r\n"), script("/bin/bash", false));
        assert_eq!(inspect(b"#!"), script("", false));
        assert_eq!(inspect(b""), Format::Empty);
        assert_eq!(inspect(b"echo"), Format::Unknown);
    }

    #[test]
    fn an_elf_file_names_its_machine_and_linker() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let head = own.get(..HEAD).unwrap();
        let Format::Elf { machine, .. } = inspect(head) else { panic!("not an ELF file") };
        assert!(is_native(machine), "{machine}");
        let shell = std::fs::read("/bin/sh").unwrap();
        if let Format::Elf { interpreter: Some(interpreter), .. } = inspect(shell.get(..HEAD).unwrap()) {
            assert!(std::path::Path::new(&interpreter).exists(), "{interpreter}");
        }
        // Any prefix is read without a panic.
        for length in 0..HEAD {
            inspect(head.get(..length).unwrap());
        }
    }

    #[test]
    fn headers_may_lead_anywhere() {
        let mut head = vec![0xff_u8; HEAD];
        head.splice(0..6, *b"\x7fELF\x02\x01");
        assert_eq!(inspect(&head), Format::Elf { machine: 0xffff, interpreter: None });
        head[4] = 1;
        head[5] = 2;
        assert_eq!(inspect(&head), Format::Elf { machine: 0xffff, interpreter: None });
    }

    #[test]
    fn advice_names_what_is_missing() {
        let text = advice("/a", &script("/no/sh", false), Errno::NOENT).unwrap();
        assert!(text.ends_with("the interpreter that it names: /no/sh"), "{text}");
        assert!(advice("/a", &script("/bin/sh", true), Errno::NOENT).unwrap().contains("carriage return"));
        let foreign = Format::Elf { machine: 22, interpreter: None };
        let text = advice("/a", &foreign, Errno::NOEXEC).unwrap();
        assert!(text.starts_with("/a is built for s390x"), "{text}");
        assert_eq!(advice("/a", &Format::Empty, Errno::NOEXEC).unwrap(), "/a is empty");
        assert_eq!(advice("/a", &Format::Unknown, Errno::TXTBSY), None);
    }
}
