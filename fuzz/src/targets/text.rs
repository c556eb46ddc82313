//! Text that ends on somebody's terminal.

use brig_cli::quote::{quote, visible};

/// Whatever comes in, nothing goes out that a terminal would obey.
pub fn text(bytes: &[u8]) {
    let quoted = quote(bytes);
    assert!(!quoted.chars().any(char::is_control), "{quoted:?}");
    assert!(quoted.starts_with('"') && quoted.ends_with('"') && quoted.len() >= 2);
    let text = String::from_utf8_lossy(bytes);
    let shown = visible(&text);
    assert!(!shown.chars().any(|c| c.is_control()), "{shown:?}");
    assert_eq!(visible(&shown), shown, "shown twice is shown once");
}

pub fn seeds() -> Vec<Vec<u8>> {
    [&b"plain"[..], b"\x1b[2J\x1b]0;title\x07", "\u{202e}\u{9b}31m".as_bytes(), b"\xff\xfe\x00"]
        .map(<[u8]>::to_vec)
        .to_vec()
}
