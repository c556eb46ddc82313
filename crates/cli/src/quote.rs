//! Quoting as Go's `%q` does it: usage errors and text logs are full of it, and clients compare them.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` between double quotes, everything that does not print escaped.
///
/// Bytes that are not UTF-8 come out as `\xNN`.
pub fn quote(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for chunk in text.utf8_chunks() {
        chunk.valid().chars().for_each(|c| push_escaped(&mut out, c));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out.push('"');
    out
}

/// `text` as it may be shown on a terminal: what does not print is escaped, and the rest stays as it is, quotes and backslashes too.
///
/// Names out of an image or of a configuration come to terminals in messages and tables. They must not be able to write to one what
/// its user takes for the runtime's words, or worse what it obeys.
pub fn visible(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_printable(c) { out.push(c) } else { push_escaped(&mut out, c) }
    }
    Cow::Owned(out)
}

/// JSON as it may be shown on a terminal: what does not print, of which JSON itself escapes only a part, becomes `\uNNNN`, which means
/// the same to whoever reads it.
pub fn visible_json(json: String) -> String {
    if json.chars().all(is_printable) {
        return json;
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_printable(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

fn push_escaped(out: &mut String, c: char) {
    let _ = match c {
        '"' | '\\' => write!(out, "\\{c}"),
        '\x07' => out.write_str("\\a"),
        '\x08' => out.write_str("\\b"),
        '\x0c' => out.write_str("\\f"),
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        '\x0b' => out.write_str("\\v"),
        _ if is_printable(c) => out.write_char(c),
        _ if c.is_ascii() => write!(out, "\\x{:02x}", u32::from(c)),
        _ if u32::from(c) < 0x1_0000 => write!(out, "\\u{:04x}", u32::from(c)),
        _ => write!(out, "\\U{:08x}", u32::from(c)),
    };
}

/// Whether Go prints `c` as it is: letters, marks, numbers, punctuation, symbols and the blank.
///
/// Unassigned code points are taken for printable here, which no reader of a log minds. What hides or turns text
/// (format characters) is not.
fn is_printable(c: char) -> bool {
    let invisible = matches!(c,
        '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{180e}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{e000}'..='\u{f8ff}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{10ffff}');
    c == ' ' || !(c.is_control() || c.is_whitespace() || invisible)
}

#[cfg(test)]
mod tests {
    use super::{quote, visible};

    #[test]
    fn json_means_the_same_when_it_is_visible() {
        let text = "\x1b[2J\u{9b}1m \u{202e}\u{e0001}é \\ \" \u{7f}";
        let json = super::visible_json(serde_json::to_string(text).unwrap());
        assert!(!json.chars().any(|c| c.is_control() || c == '\u{202e}' || c == '\u{e0001}'), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn nothing_reaches_a_terminal_that_it_obeys() {
        assert_eq!(visible(r#"say "hi" \o/ é世"#), r#"say "hi" \o/ é世"#);
        assert_eq!(visible("\x1b[2J\r\n\u{9b}1m\u{202e}"), r"\x1b[2J\r\n\u009b1m\u202e");
    }

    #[test]
    fn escapes_as_go_does() {
        assert_eq!(quote(b""), r#""""#);
        assert_eq!(quote(b"plain text"), r#""plain text""#);
        assert_eq!(quote(br#"say "hi" \o/"#), r#""say \"hi\" \\o/""#);
        assert_eq!(quote(b"\x07\x08\x0c\n\r\t\x0b"), r#""\a\b\f\n\r\t\v""#);
        assert_eq!(quote(b"\x00\x1b\x7f"), r#""\x00\x1b\x7f""#);
        assert_eq!(quote("é世🦀".as_bytes()), "\"é世🦀\"");
        assert_eq!(quote("\u{a0}\u{2028}\u{feff}\u{e0001}".as_bytes()), r#""\u00a0\u2028\ufeff\U000e0001""#);
        assert_eq!(quote(b"a\xffb\xc3"), r#""a\xffb\xc3""#);
    }
}
