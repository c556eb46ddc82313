//! Messages of D-Bus as bytes, see the D-Bus specification, "Marshaling" and "Message Protocol".

use super::value::{Type, Value};

/// The longest message that is taken from a peer. What systemd says to us is below 1 KiB, but on its private socket it also
/// announces the properties of all units that change.
pub(super) const MESSAGE_MAX: usize = 1 << 20;

/// The part of a header that tells how long the message is.
pub(super) const FIXED: usize = 16;

/// Kinds of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A method call.
    Call = 1,
    /// Its answer.
    Return = 2,
    /// The answer that it failed.
    Error = 3,
    /// A signal.
    Signal = 4,
}

/// Codes of header fields.
mod field {
    pub(super) const PATH: u8 = 1;
    pub(super) const INTERFACE: u8 = 2;
    pub(super) const MEMBER: u8 = 3;
    pub(super) const ERROR_NAME: u8 = 4;
    pub(super) const REPLY_SERIAL: u8 = 5;
    pub(super) const DESTINATION: u8 = 6;
    pub(super) const SIGNATURE: u8 = 8;
}

/// Flag of a call that wants no answer.
const NO_REPLY: u8 = 1;

/// A method call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    /// Bus name of the callee; none on a socket that has only one.
    pub destination: Option<&'a str>,
    /// Object.
    pub path: &'a str,
    /// Interface.
    pub interface: &'a str,
    /// Method.
    pub member: &'a str,
    /// An answer is wanted.
    pub reply: bool,
}

/// A message that was received.
#[derive(Debug)]
pub(super) struct Message {
    /// Its kind; `None` for one that this program does not know, which the specification wants ignored.
    pub kind: Option<Kind>,
    /// The serial of the call that it answers.
    pub answers: Option<u32>,
    /// Member of a signal, name of an error.
    pub name: String,
    /// Its arguments.
    arguments: Vec<Value>,
}

impl Call<'_> {
    /// The message.
    ///
    /// # Errors
    ///
    /// It would be longer than any message may be.
    pub(super) fn encode(&self, serial: u32, arguments: &[Value]) -> Result<Vec<u8>, String> {
        let mut body = Writer::default();
        let mut signature = String::new();
        for argument in arguments {
            body.value(argument)?;
            signature.push_str(&argument.kind().to_string());
        }
        let text = |code, text: &str| header_field(code, Value::from(text));
        let mut fields = vec![
            header_field(field::PATH, Value::ObjectPath(self.path.to_owned())),
            text(field::INTERFACE, self.interface),
            text(field::MEMBER, self.member),
        ];
        fields.extend(self.destination.map(|destination| text(field::DESTINATION, destination)));
        if !signature.is_empty() {
            fields.push(header_field(field::SIGNATURE, Value::Signature(signature)));
        }
        let mut head = Writer::default();
        let flags = if self.reply { 0 } else { NO_REPLY };
        head.0.extend([b'l', Kind::Call as u8, flags, 1]);
        head.length(body.0.len())?;
        head.0.extend(serial.to_le_bytes());
        head.value(&Value::Array(Type::Struct(vec![Type::Byte, Type::Variant]), fields))?;
        head.align(8);
        head.0.extend(body.0);
        if head.0.len() > MESSAGE_MAX { Err(too_long()) } else { Ok(head.0) }
    }
}

fn header_field(code: u8, value: Value) -> Value {
    Value::Struct(vec![Value::Byte(code), Value::Variant(Box::new(value))])
}

/// Writes values, in the order of the little end.
#[derive(Debug, Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn align(&mut self, alignment: usize) {
        self.0.resize(self.0.len().next_multiple_of(alignment), 0);
    }

    fn length(&mut self, length: usize) -> Result<(), String> {
        self.0.extend(u32::try_from(length).map_err(|_| too_long())?.to_le_bytes());
        Ok(())
    }

    fn value(&mut self, value: &Value) -> Result<(), String> {
        self.align(value.kind().alignment());
        match value {
            Value::Byte(number) => self.0.push(*number),
            Value::Boolean(value) => self.0.extend(u32::from(*value).to_le_bytes()),
            Value::Int16(number) => self.0.extend(number.to_le_bytes()),
            Value::Uint16(number) => self.0.extend(number.to_le_bytes()),
            Value::Int32(number) => self.0.extend(number.to_le_bytes()),
            Value::Uint32(number) => self.0.extend(number.to_le_bytes()),
            Value::Int64(number) => self.0.extend(number.to_le_bytes()),
            Value::Uint64(number) => self.0.extend(number.to_le_bytes()),
            Value::Double(number) => self.0.extend(number.to_le_bytes()),
            Value::Text(text) | Value::ObjectPath(text) => {
                self.length(text.len())?;
                self.0.extend(text.as_bytes());
                self.0.push(0);
            }
            Value::Signature(text) => self.signature(text)?,
            Value::Variant(value) => {
                self.signature(&value.kind().to_string())?;
                self.value(value)?;
            }
            Value::Array(element, values) => {
                let at = self.0.len();
                self.length(0)?;
                // The length is without what comes before the first element.
                self.align(element.alignment());
                let begin = self.0.len();
                for value in values {
                    self.value(value)?;
                }
                let length = u32::try_from(self.0.len() - begin).map_err(|_| too_long())?;
                if let Some(place) = self.0.get_mut(at..at + 4) {
                    place.copy_from_slice(&length.to_le_bytes());
                }
            }
            Value::Entry(entry) => {
                self.value(&entry.0)?;
                self.value(&entry.1)?;
            }
            Value::Struct(fields) => fields.iter().try_for_each(|field| self.value(field))?,
        }
        Ok(())
    }

    fn signature(&mut self, text: &str) -> Result<(), String> {
        self.0.push(u8::try_from(text.len()).map_err(|_| "a signature of more than 255 bytes")?);
        self.0.extend(text.as_bytes());
        self.0.push(0);
        Ok(())
    }
}

/// How long the message is that begins with `head`, at least [`FIXED`] bytes of it.
///
/// # Errors
///
/// It is not the beginning of a message, or of one that is longer than [`MESSAGE_MAX`].
pub(super) fn length(head: &[u8]) -> Result<usize, String> {
    let mut reader = Reader::new(head)?;
    reader.at = 3;
    let version = reader.byte()?;
    if version != 1 {
        return Err(format!("version {version} of the protocol"));
    }
    let body = reader.length()?;
    reader.at = 12;
    let length = (FIXED + reader.length()?).next_multiple_of(8) + body;
    if length > MESSAGE_MAX { Err(too_long()) } else { Ok(length) }
}

fn too_long() -> String {
    format!("a message of more than {MESSAGE_MAX} bytes")
}

impl Message {
    /// Reads a whole message, as long as [`length`] says.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = Reader::new(bytes)?;
        reader.at = 1;
        let kind = reader.byte()?;
        let kind = [Kind::Call, Kind::Return, Kind::Error, Kind::Signal]
            .into_iter()
            .find(|known| *known as u8 == kind);
        reader.at = 12;
        let fields = Type::Array(Box::new(Type::Struct(vec![Type::Byte, Type::Variant])));
        let Value::Array(_, fields) = reader.value(&fields)? else {
            return Err("no header fields".to_owned());
        };
        let mut message = Self { kind, answers: None, name: String::new(), arguments: Vec::new() };
        let mut signature = String::new();
        for entry in fields {
            let Value::Struct(entry) = entry else { continue };
            let Ok([Value::Byte(code), Value::Variant(value)]) = <[Value; 2]>::try_from(entry) else {
                continue;
            };
            match (code, *value) {
                (field::MEMBER | field::ERROR_NAME, Value::Text(name)) => message.name = name,
                (field::REPLY_SERIAL, Value::Uint32(serial)) => message.answers = Some(serial),
                (field::SIGNATURE, Value::Signature(text)) => signature = text,
                _ => {}
            }
        }
        // Of signals, only these are for us; their values may be anything.
        if message.kind != Some(Kind::Signal) || message.name == "JobRemoved" {
            reader.align(8)?;
            let types = Type::parse_all(&signature).ok_or_else(|| format!("signature {signature:?}"))?;
            message.arguments = types.iter().map(|kind| reader.value(kind)).collect::<Result<_, _>>()?;
        }
        Ok(message)
    }

    /// An argument that is text: a string, an object path, or a variant that holds one.
    pub(super) fn text(&self, index: usize) -> Option<&str> {
        let mut value = self.arguments.get(index)?;
        while let Value::Variant(inner) = value {
            value = inner;
        }
        match value {
            Value::Text(text) | Value::ObjectPath(text) => Some(text),
            _ => None,
        }
    }
}

/// Reads values. What is announced is not believed: memory is taken for what is there.
#[derive(Debug)]
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    big: bool,
    /// Of variants in variants.
    depth: usize,
}

/// How deep variants may be nested.
const DEPTH_MAX: usize = 16;

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Result<Self, String> {
        let big = match bytes.first() {
            Some(b'l') => false,
            Some(b'B') => true,
            Some(other) => return Err(format!("byte order {other:#04x}")),
            None => return Err(cut()),
        };
        Ok(Self { bytes, at: 0, big, depth: 0 })
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let end = self.at.checked_add(length).ok_or_else(too_long)?;
        let taken = self.bytes.get(self.at..end).ok_or_else(cut)?;
        self.at = end;
        Ok(taken)
    }

    fn align(&mut self, alignment: usize) -> Result<(), String> {
        let padding = self.at.next_multiple_of(alignment) - self.at;
        self.take(padding).map(drop)
    }

    fn byte(&mut self) -> Result<u8, String> {
        self.number().map(|[byte]: [u8; 1]| byte)
    }

    /// The bytes of a number, those that count least first.
    fn number<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.align(N)?;
        let mut bytes: [u8; N] = self.take(N)?.try_into().map_err(|_| cut())?;
        if self.big {
            bytes.reverse();
        }
        Ok(bytes)
    }

    fn length(&mut self) -> Result<usize, String> {
        let length = u32::from_le_bytes(self.number()?);
        usize::try_from(length).ok().filter(|length| *length <= MESSAGE_MAX).ok_or_else(too_long)
    }

    /// Text of so many bytes, and the zero byte after it.
    fn text(&mut self, length: usize) -> Result<String, String> {
        let bytes = self.take(length)?.to_vec();
        self.take(1)?;
        String::from_utf8(bytes).map_err(|_| "text that is not UTF-8".to_owned())
    }

    fn signature(&mut self) -> Result<String, String> {
        let length = self.byte()?;
        self.text(length.into())
    }

    fn value(&mut self, kind: &Type) -> Result<Value, String> {
        self.align(kind.alignment())?;
        Ok(match kind {
            Type::Byte => Value::Byte(self.byte()?),
            Type::Boolean => Value::Boolean(u32::from_le_bytes(self.number()?) != 0),
            Type::Int16 => Value::Int16(i16::from_le_bytes(self.number()?)),
            Type::Uint16 => Value::Uint16(u16::from_le_bytes(self.number()?)),
            Type::Int32 => Value::Int32(i32::from_le_bytes(self.number()?)),
            Type::Uint32 => Value::Uint32(u32::from_le_bytes(self.number()?)),
            Type::Int64 => Value::Int64(i64::from_le_bytes(self.number()?)),
            Type::Uint64 => Value::Uint64(u64::from_le_bytes(self.number()?)),
            Type::Double => Value::Double(f64::from_le_bytes(self.number()?)),
            Type::Text | Type::ObjectPath => {
                let length = self.length()?;
                let text = self.text(length)?;
                if *kind == Type::Text { Value::Text(text) } else { Value::ObjectPath(text) }
            }
            Type::Signature => Value::Signature(self.signature()?),
            Type::Variant => {
                let signature = self.signature()?;
                let inner = Type::parse(&signature).ok_or_else(|| format!("signature {signature:?}"))?;
                self.depth += 1;
                if self.depth > DEPTH_MAX {
                    return Err("variants in variants".to_owned());
                }
                let value = self.value(&inner)?;
                self.depth -= 1;
                Value::Variant(Box::new(value))
            }
            Type::Array(element) => {
                let length = self.length()?;
                self.align(element.alignment())?;
                let end = self.at + length;
                let mut values = Vec::new();
                while self.at < end {
                    values.push(self.value(element)?);
                }
                if self.at > end {
                    return Err("an array that ends within an element".to_owned());
                }
                Value::Array((**element).clone(), values)
            }
            Type::Entry(entry) => Value::Entry(Box::new((self.value(&entry.0)?, self.value(&entry.1)?))),
            Type::Struct(fields) => {
                Value::Struct(fields.iter().map(|field| self.value(field)).collect::<Result<_, _>>()?)
            }
        })
    }
}

fn cut() -> String {
    "a message that is cut off".to_owned()
}

#[cfg(test)]
mod tests;
