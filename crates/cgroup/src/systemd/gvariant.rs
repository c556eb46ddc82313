//! Values of annotations: GVariant text, see the GLib manual, "GVariant Text Format".

use super::value::{Type, Value};

/// How deep values may be nested.
const DEPTH_MAX: usize = 16;

/// Reads one value.
///
/// # Errors
///
/// What is wrong, and where.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let mut parser = Parser { text, rest: text, depth: 0 };
    let value = parser.value(None)?;
    parser.space();
    if parser.rest.is_empty() { Ok(value) } else { Err(parser.fault("the end")) }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn fault(&self, wanted: &str) -> String {
        let at = self.text.len() - self.rest.len();
        format!("at byte {at} of {:?}: expected {wanted}", self.text)
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, token: char) -> bool {
        self.space();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn need(&mut self, token: char) -> Result<(), String> {
        if self.take(token) { Ok(()) } else { Err(self.fault(&format!("{token:?}"))) }
    }

    /// Letters, digits and what numbers are made of.
    fn word(&mut self) -> &'a str {
        self.space();
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "+-._".contains(c)))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// A value, of type `wanted` if that is known.
    fn value(&mut self, wanted: Option<&Type>) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.fault("less nesting"));
        }
        self.space();
        let value = match self.rest.chars().next() {
            Some('@') => self.annotated(),
            Some('[') => self.array(wanted),
            Some('{') => self.dict(wanted),
            Some('(') => self.tuple(wanted),
            Some('<') => self.variant(),
            Some('\'' | '"') => self.string().and_then(|text| self.textual(text, wanted)),
            Some('b') if self.rest.starts_with("b'") || self.rest.starts_with("b\"") => self.bytes(),
            _ => self.plain(wanted),
        };
        self.depth -= 1;
        value
    }

    /// `@TYPE VALUE`.
    fn annotated(&mut self) -> Result<Value, String> {
        self.need('@')?;
        let end = self.rest.find([' ', '\t']).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        let wanted = Type::parse(name).ok_or_else(|| self.fault("a type"))?;
        self.rest = rest;
        self.value(Some(&wanted))
    }

    /// A number, a boolean, or one of these and others after the name of its type.
    fn plain(&mut self, wanted: Option<&Type>) -> Result<Value, String> {
        let before = self.rest;
        let word = self.word();
        let named = match word {
            "true" => return Ok(Value::Boolean(true)),
            "false" => return Ok(Value::Boolean(false)),
            "boolean" => Type::Boolean,
            "byte" => Type::Byte,
            "int16" => Type::Int16,
            "uint16" => Type::Uint16,
            "int32" => Type::Int32,
            "uint32" => Type::Uint32,
            "int64" => Type::Int64,
            "uint64" => Type::Uint64,
            "double" => Type::Double,
            "string" => Type::Text,
            "objectpath" => Type::ObjectPath,
            "signature" => Type::Signature,
            _ => {
                let number = number(word, wanted);
                return number.ok_or_else(|| {
                    self.rest = before;
                    self.fault("a value")
                });
            }
        };
        self.value(Some(&named))
    }

    fn textual(&self, text: String, wanted: Option<&Type>) -> Result<Value, String> {
        match wanted {
            Some(Type::ObjectPath) if is_object_path(&text) => Ok(Value::ObjectPath(text)),
            Some(Type::ObjectPath) => Err(self.fault("an object path before here")),
            Some(Type::Signature) if Type::parse_all(&text).is_some() => Ok(Value::Signature(text)),
            Some(Type::Signature) => Err(self.fault("a signature before here")),
            None | Some(Type::Text) => Ok(Value::Text(text)),
            Some(other) => Err(self.fault(&format!("a value of type {other} instead of a string"))),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let mut text = String::new();
        let mut chars = self.rest.chars();
        let quote = chars.next();
        loop {
            let next = chars.next();
            if next == quote {
                self.rest = chars.as_str();
                return Ok(text);
            }
            let plain = match next {
                None => return Err(self.fault("a closing quote")),
                Some('\\') => match chars.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some('u') => unicode(&mut chars, 4).ok_or_else(|| self.fault("\\uXXXX"))?,
                    Some('U') => unicode(&mut chars, 8).ok_or_else(|| self.fault("\\UXXXXXXXX"))?,
                    Some(other) => other,
                    None => return Err(self.fault("a closing quote")),
                },
                Some(plain) => plain,
            };
            // D-Bus has no strings with a zero in them.
            if plain == '\0' {
                return Err(self.fault("text without a zero character"));
            }
            text.push(plain);
        }
    }

    /// `b'…'`: bytes with a zero at the end.
    fn bytes(&mut self) -> Result<Value, String> {
        self.need('b')?;
        let mut bytes = self.string()?.into_bytes();
        bytes.push(0);
        Ok(Value::from(bytes))
    }

    fn array(&mut self, wanted: Option<&Type>) -> Result<Value, String> {
        let mut element = match wanted {
            Some(Type::Array(element)) => Some((**element).clone()),
            None => None,
            Some(other) => return Err(self.fault(&format!("a value of type {other}"))),
        };
        self.need('[')?;
        let mut values = Vec::new();
        while !self.take(']') {
            let value = self.value(element.as_ref())?;
            if *element.get_or_insert_with(|| value.kind()) != value.kind() {
                return Err(self.fault("elements of one type"));
            }
            values.push(value);
            if !self.take(',') {
                self.need(']')?;
                break;
            }
        }
        let element = element.ok_or_else(|| self.fault("a type, such as @as, before an empty array"))?;
        Ok(Value::Array(element, values))
    }

    fn dict(&mut self, wanted: Option<&Type>) -> Result<Value, String> {
        let mut types = match wanted {
            Some(Type::Array(element)) if matches!(**element, Type::Entry(_)) => match &**element {
                Type::Entry(types) => Some((**types).clone()),
                _ => None,
            },
            None => None,
            Some(other) => return Err(self.fault(&format!("a value of type {other}"))),
        };
        self.need('{')?;
        let mut entries = Vec::new();
        while !self.take('}') {
            let key = self.value(types.as_ref().map(|types| &types.0))?;
            self.need(':')?;
            let value = self.value(types.as_ref().map(|types| &types.1))?;
            let found = (key.kind(), value.kind());
            if *types.get_or_insert_with(|| found.clone()) != found {
                return Err(self.fault("entries of one type"));
            }
            entries.push(Value::Entry(Box::new((key, value))));
            if !self.take(',') {
                self.need('}')?;
                break;
            }
        }
        let types = types.ok_or_else(|| self.fault("a type, such as @a{ss}, before an empty dictionary"))?;
        Ok(Value::Array(Type::Entry(Box::new(types)), entries))
    }

    fn tuple(&mut self, wanted: Option<&Type>) -> Result<Value, String> {
        let types = match wanted {
            Some(Type::Struct(types)) => Some(types),
            None => None,
            Some(other) => return Err(self.fault(&format!("a value of type {other}"))),
        };
        self.need('(')?;
        let mut fields = Vec::new();
        while !self.take(')') {
            let known = types.map(|types| types.get(fields.len()).ok_or_else(|| self.fault("fewer fields")));
            fields.push(self.value(known.transpose()?)?);
            if !self.take(',') {
                self.need(')')?;
                break;
            }
        }
        if fields.is_empty() || types.is_some_and(|types| types.len() > fields.len()) {
            return Err(self.fault("more fields"));
        }
        Ok(Value::Struct(fields))
    }

    fn variant(&mut self) -> Result<Value, String> {
        self.need('<')?;
        let value = self.value(None)?;
        self.need('>')?;
        Ok(Value::Variant(Box::new(value)))
    }
}

/// See the D-Bus specification, "Valid Object Paths".
fn is_object_path(text: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    text == "/" || text.strip_prefix('/').is_some_and(|parts| parts.split('/').all(plain))
}

fn unicode(chars: &mut std::str::Chars<'_>, digits: usize) -> Option<char> {
    let hex: String = chars.by_ref().take(digits).collect();
    if hex.len() == digits { char::from_u32(u32::from_str_radix(&hex, 16).ok()?) } else { None }
}

/// A number of the type that is wanted, else an int32, or a double if it is written as one.
fn number(word: &str, wanted: Option<&Type>) -> Option<Value> {
    if word.is_empty() {
        return None;
    }
    match wanted {
        Some(Type::Double) => return word.parse().ok().map(Value::Double),
        None if word.contains(['.', 'e', 'E']) && !word.starts_with("0x") => {
            return word.parse().ok().map(Value::Double);
        }
        _ => {}
    }
    let (negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word.strip_prefix('+').unwrap_or(word)),
    };
    let (radix, digits) = match digits.strip_prefix("0x") {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let number = i128::from(u64::from_str_radix(digits, radix).ok()?);
    let number = if negative { -number } else { number };
    match wanted.unwrap_or(&Type::Int32) {
        Type::Byte => number.try_into().ok().map(Value::Byte),
        Type::Int16 => number.try_into().ok().map(Value::Int16),
        Type::Uint16 => number.try_into().ok().map(Value::Uint16),
        Type::Int32 => number.try_into().ok().map(Value::Int32),
        Type::Uint32 => number.try_into().ok().map(Value::Uint32),
        Type::Int64 => number.try_into().ok().map(Value::Int64),
        Type::Uint64 => number.try_into().ok().map(Value::Uint64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        match parse(text) {
            Ok(value) => format!("{}: {value}", value.kind()),
            Err(fault) => fault,
        }
    }

    #[test]
    fn values() {
        for (text, expected) in [
            ("true", "b: true"),
            ("uint64 30000000", "t: uint64 30000000"),
            ("-5", "i: -5"),
            ("0x1f", "i: 31"),
            ("byte 010", "y: byte 0x08"),
            ("1.5", "d: 1.5"),
            (" 'it''s' ", "at byte 5 of \" 'it''s' \": expected the end"),
            (r"'it\'s'", "s: \"it's\""),
            (r#""a\u0041""#, "s: \"aA\""),
            ("['a', 'b']", "as: [\"a\", \"b\"]"),
            ("@as []", "as: @as []"),
            ("@au [1, 2,]", "au: [uint32 1, uint32 2]"),
            ("[(1, 'x'), (2, 'y')]", "a(is): [(1, \"x\"), (2, \"y\")]"),
            ("(uint32 1,)", "(u): (uint32 1)"),
            ("{'a': <1>}", "a{sv}: [\"a\": <1>]"),
            ("objectpath '/a/b'", "o: objectpath \"/a/b\""),
            ("@(st) ('x', 7)", "(st): (\"x\", uint64 7)"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn faults() {
        for (text, expected) in [
            ("", "at byte 0 of \"\": expected a value"),
            ("30s", "at byte 0 of \"30s\": expected a value"),
            ("'open", "at byte 0 of \"'open\": expected a closing quote"),
            ("uint32 -1", "at byte 7 of \"uint32 -1\": expected a value"),
            ("[]", "at byte 2 of \"[]\": expected a type, such as @as, before an empty array"),
            ("[1, 'x']", "at byte 7 of \"[1, 'x']\": expected a value of type i instead of a string"),
            ("uint64 'x'", "at byte 10 of \"uint64 'x'\": expected a value of type t instead of a string"),
            ("'a\0b'", "at byte 0 of \"'a\\0b'\": expected text without a zero character"),
            ("5000000000", "at byte 0 of \"5000000000\": expected a value"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert!(parse(&"[".repeat(1000)).is_err());
    }

    proptest! {
        #[test]
        fn anything(text in "[\\[\\](){}<>@a-z0-9'\", .:-]{0,40}") {
            let _ = parse(&text);
        }
    }
}
