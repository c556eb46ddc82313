//! Values that D-Bus can carry, and their types, see the D-Bus specification, "Type System".

use std::fmt;

/// How deep types may be nested: more than anything has that systemd is told or tells.
const DEPTH_MAX: usize = 16;

/// A complete type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the specification's")]
pub(crate) enum Type {
    Byte,
    Boolean,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Double,
    Text,
    ObjectPath,
    Signature,
    Variant,
    Array(Box<Type>),
    /// One entry of a dictionary, as the element of an array.
    Entry(Box<(Type, Type)>),
    Struct(Vec<Type>),
}

/// The types of one letter.
const BASIC: [(char, Type); 13] = [
    ('y', Type::Byte),
    ('b', Type::Boolean),
    ('n', Type::Int16),
    ('q', Type::Uint16),
    ('i', Type::Int32),
    ('u', Type::Uint32),
    ('x', Type::Int64),
    ('t', Type::Uint64),
    ('d', Type::Double),
    ('s', Type::Text),
    ('o', Type::ObjectPath),
    ('g', Type::Signature),
    ('v', Type::Variant),
];

impl Type {
    /// Reads a signature: any number of complete types.
    pub(super) fn parse_all(signature: &str) -> Option<Vec<Self>> {
        let mut types = Vec::new();
        let mut rest = signature;
        while !rest.is_empty() {
            let (found, after) = Self::parse_one(rest, 0)?;
            types.push(found);
            rest = after;
        }
        Some(types)
    }

    /// Reads one complete type.
    pub(super) fn parse(signature: &str) -> Option<Self> {
        let [one] = <[Self; 1]>::try_from(Self::parse_all(signature)?).ok()?;
        Some(one)
    }

    fn parse_one(text: &str, depth: usize) -> Option<(Self, &str)> {
        if depth > DEPTH_MAX {
            return None;
        }
        let letter = text.chars().next()?;
        let rest = text.get(letter.len_utf8()..)?;
        if let Some((_, basic)) = BASIC.iter().find(|(known, _)| *known == letter) {
            return Some((basic.clone(), rest));
        }
        match letter {
            'a' => {
                if let Some(entry) = rest.strip_prefix('{') {
                    let (key, rest) = Self::parse_one(entry, depth + 1)?;
                    let (value, rest) = Self::parse_one(rest, depth + 1)?;
                    let entry = Self::Entry(Box::new((key, value)));
                    return Some((Self::Array(Box::new(entry)), rest.strip_prefix('}')?));
                }
                let (element, rest) = Self::parse_one(rest, depth + 1)?;
                Some((Self::Array(Box::new(element)), rest))
            }
            '(' => {
                let mut fields = Vec::new();
                let mut rest = rest;
                loop {
                    if let Some(after) = rest.strip_prefix(')') {
                        return (!fields.is_empty()).then_some((Self::Struct(fields), after));
                    }
                    let (field, after) = Self::parse_one(rest, depth + 1)?;
                    fields.push(field);
                    rest = after;
                }
            }
            _ => None,
        }
    }

    /// Where a value of this type may begin: at multiples of this.
    pub(super) fn alignment(&self) -> usize {
        match self {
            Self::Byte | Self::Signature | Self::Variant => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Boolean | Self::Int32 | Self::Uint32 | Self::Text | Self::ObjectPath | Self::Array(_) => 4,
            Self::Int64 | Self::Uint64 | Self::Double | Self::Entry(_) | Self::Struct(_) => 8,
        }
    }
}

/// As signatures have it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(element) => write!(f, "a{element}"),
            Self::Entry(entry) => write!(f, "{{{}{}}}", entry.0, entry.1),
            Self::Struct(fields) => {
                f.write_str("(")?;
                fields.iter().try_for_each(|field| write!(f, "{field}"))?;
                f.write_str(")")
            }
            basic => match BASIC.iter().find(|(_, known)| known == basic) {
                Some((letter, _)) => write!(f, "{letter}"),
                None => Ok(()),
            },
        }
    }
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the names are the specification's")]
pub(crate) enum Value {
    Byte(u8),
    Boolean(bool),
    Int16(i16),
    Uint16(u16),
    Int32(i32),
    Uint32(u32),
    Int64(i64),
    Uint64(u64),
    Double(f64),
    Text(String),
    ObjectPath(String),
    Signature(String),
    Variant(Box<Value>),
    /// Elements, of the type before them.
    Array(Type, Vec<Value>),
    Entry(Box<(Value, Value)>),
    Struct(Vec<Value>),
}

impl Value {
    /// Its type.
    pub(super) fn kind(&self) -> Type {
        match self {
            Self::Byte(_) => Type::Byte,
            Self::Boolean(_) => Type::Boolean,
            Self::Int16(_) => Type::Int16,
            Self::Uint16(_) => Type::Uint16,
            Self::Int32(_) => Type::Int32,
            Self::Uint32(_) => Type::Uint32,
            Self::Int64(_) => Type::Int64,
            Self::Uint64(_) => Type::Uint64,
            Self::Double(_) => Type::Double,
            Self::Text(_) => Type::Text,
            Self::ObjectPath(_) => Type::ObjectPath,
            Self::Signature(_) => Type::Signature,
            Self::Variant(_) => Type::Variant,
            Self::Array(element, _) => Type::Array(Box::new(element.clone())),
            Self::Entry(entry) => Type::Entry(Box::new((entry.0.kind(), entry.1.kind()))),
            Self::Struct(fields) => Type::Struct(fields.iter().map(Self::kind).collect()),
        }
    }

    /// An array of strings.
    pub(super) fn texts(texts: &[&str]) -> Self {
        Self::Array(Type::Text, texts.iter().map(|text| Self::from(*text)).collect())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Boolean(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Uint64(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Array(Type::Byte, bytes.into_iter().map(Self::Byte).collect())
    }
}

/// As GVariant text, with types where they are not what one would take the text for.
#[cfg(test)]
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, values: &[Self]| {
            for (index, value) in values.iter().enumerate() {
                write!(f, "{}{value}", if index == 0 { "" } else { ", " })?;
            }
            Ok(())
        };
        match self {
            Self::Byte(value) => write!(f, "byte {value:#04x}"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Int16(value) => write!(f, "int16 {value}"),
            Self::Uint16(value) => write!(f, "uint16 {value}"),
            Self::Int32(value) => write!(f, "{value}"),
            Self::Uint32(value) => write!(f, "uint32 {value}"),
            Self::Int64(value) => write!(f, "int64 {value}"),
            Self::Uint64(value) => write!(f, "uint64 {value}"),
            Self::Double(value) => write!(f, "{value:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::ObjectPath(text) => write!(f, "objectpath {text:?}"),
            Self::Signature(text) => write!(f, "signature {text:?}"),
            Self::Variant(value) => write!(f, "<{value}>"),
            Self::Array(element, values) if values.is_empty() => write!(f, "@a{element} []"),
            Self::Array(_, values) => {
                f.write_str("[")?;
                list(f, values)?;
                f.write_str("]")
            }
            Self::Entry(entry) => write!(f, "{}: {}", entry.0, entry.1),
            Self::Struct(fields) => {
                f.write_str("(")?;
                list(f, fields)?;
                f.write_str(")")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_read_as_they_are_written() {
        for text in ["s", "a(sv)", "a{s(it)}", "aay", "((b)x)", "a(sa(sv))"] {
            assert_eq!(Type::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Type::parse_all("ssa(sv)a(sa(sv))").unwrap().len(), 4);
        assert_eq!(Type::parse_all("").unwrap(), []);
    }

    #[test]
    fn what_is_no_signature() {
        for text in ["z", "a", "(", "()", "(s", "a{s", "a{s}", "a{ss", "{ss}", "é", &"a".repeat(300)] {
            assert_eq!(Type::parse_all(text), None, "{text}");
        }
    }
}
