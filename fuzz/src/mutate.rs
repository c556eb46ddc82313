//! Mutations of inputs: of bytes, of numbers in text, of tokens, and crossings of two inputs.

use serde_json::Value;

/// Marsaglia's xorshift: the same on each run.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// A sequence that its seed decides.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 0 to `end`, exclusive.
    pub fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.draw() % u64::try_from(end.max(1)).unwrap()).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.draw().to_le_bytes()[3]
    }
}

/// Integers at which something changes.
const EDGES: [&str; 18] = [
    "0",
    "-0",
    "1",
    "-1",
    "127",
    "128",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1e309",
];

/// Words that formats have a meaning for.
const WORDS: [&str; 26] = [
    "..", "/", "../", "/../..", "\0", "\\u0000", "\\ud800", "\u{202e}", "null", "true", "{}", "[]", "\"\"",
    ",", ":", "{\"", "\":", "[[[[[[[[", "\\040", " - ", "=", "\n", "-", "--", "\x1b[31m", "max",
];

/// Inputs grow no longer than this.
const LONGEST: usize = 16 << 10;

/// One to eight mutations of `input`, the rest of the corpus being there to cross it with.
pub fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], dictionary: &[Vec<u8>], random: &mut Random) {
    for _ in 0..=random.below(8) {
        once(input, corpus, dictionary, random);
    }
    input.truncate(LONGEST);
}

fn once(input: &mut Vec<u8>, corpus: &[Vec<u8>], dictionary: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let span = |random: &mut Random| {
        let most = 1 << random.below(8);
        1 + random.below(most)
    };
    match random.below(12) {
        0 if at < input.len() => input[at] ^= 1 << random.below(8),
        1 if at < input.len() => input[at] = random.byte(),
        2 => input.insert(at, random.byte()),
        3 => {
            let end = (at + span(random)).min(input.len());
            input.drain(at..end);
        }
        4 => {
            let end = (at + span(random)).min(input.len());
            let piece = input[at..end].to_vec();
            let to = random.below(input.len() + 1);
            input.splice(to..to, piece);
        }
        5 | 6 => number(input, at, random),
        7 => {
            let word = WORDS[random.below(WORDS.len())];
            input.splice(at..at, word.bytes());
        }
        8 | 9 if !dictionary.is_empty() => {
            let word = &dictionary[random.below(dictionary.len())];
            // In place of the token that is there, or between others.
            let end = if random.below(2) == 0 { token_end(input, at) } else { at };
            input.splice(at..end, word.iter().copied());
        }
        10 => input.truncate(at),
        _ if !corpus.is_empty() => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            let end = (from + 1 + random.below(256)).min(other.len());
            let until = (at + random.below(256)).min(input.len());
            input.splice(at..until, other[from..end].iter().copied());
        }
        _ => {}
    }
}

/// Mutates a document as such, so that what comes out is one: one to four of its values are changed, doubled, dropped, or replaced
/// by others of the corpus.
pub fn mutate_document(document: &mut Value, corpus: &[Value], random: &mut Random) {
    for _ in 0..=random.below(4) {
        let donor = match corpus.is_empty() {
            true => Value::Null,
            false => some_node(&corpus[random.below(corpus.len())], random).clone(),
        };
        descend(document, donor, random);
    }
}

/// Somewhere down: each level is stopped at with the same chance.
fn descend(node: &mut Value, donor: Value, random: &mut Random) {
    let stop = random.below(5) == 0;
    match node {
        Value::Array(items) if !stop && !items.is_empty() => {
            let at = random.below(items.len());
            descend(&mut items[at], donor, random);
        }
        Value::Object(members) if !stop && !members.is_empty() => {
            let at = random.below(members.len());
            descend(members.values_mut().nth(at).unwrap(), donor, random);
        }
        _ => change(node, donor, random),
    }
}

fn some_node<'a>(document: &'a Value, random: &mut Random) -> &'a Value {
    let children: Vec<&Value> = match document {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    };
    if children.is_empty() || random.below(4) == 0 {
        return document;
    }
    some_node(children[random.below(children.len())], random)
}

fn change(node: &mut Value, donor: Value, random: &mut Random) {
    match (random.below(6), &mut *node) {
        (0, Value::Array(items)) => items.push(donor),
        (1, Value::Array(items)) if !items.is_empty() => {
            let again = items[random.below(items.len())].clone();
            items.push(again);
        }
        (0, Value::Object(members)) => {
            let word = WORDS[random.below(WORDS.len())];
            members.insert(word.to_owned(), donor);
        }
        (1, Value::Object(members)) => {
            let key = members.keys().nth(random.below(members.len())).cloned();
            key.and_then(|key| members.remove(&key));
        }
        (0 | 1, Value::String(text)) => text.push_str(WORDS[random.below(WORDS.len())]),
        (2, Value::String(text)) => text.insert_str(0, WORDS[random.below(WORDS.len())]),
        (0..=3, Value::Number(_)) | (4, _) => {
            *node = serde_json::from_str(EDGES[random.below(EDGES.len())]).unwrap_or(Value::Null);
        }
        (5, _) => *node = Value::String(WORDS[random.below(WORDS.len())].to_owned()),
        _ => *node = donor,
    }
}

/// Replaces the next number of a text by one at an edge.
fn number(input: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(start) = input[at..].iter().position(u8::is_ascii_digit).map(|n| at + n) else { return };
    let end = input[start..].iter().position(|b| !b.is_ascii_digit()).map_or(input.len(), |n| start + n);
    input.splice(start..end, EDGES[random.below(EDGES.len())].bytes());
}

fn token_end(input: &[u8], at: usize) -> usize {
    let ends = |b: &u8| !b.is_ascii_alphanumeric() && *b != b'_';
    input[at..].iter().skip(1).position(ends).map_or(input.len(), |n| at + 1 + n)
}
