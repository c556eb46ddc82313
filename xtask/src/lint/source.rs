//! As much of Rust's grammar as it takes to find functions and test modules: words and brackets outside comments and literals.

use std::ops::RangeInclusive;

/// A word (name, keyword, number) or a punctuation character, with its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// A source file.
#[derive(Debug)]
pub struct Source<'a> {
    lines: Vec<&'a str>,
    tokens: Vec<Token<'a>>,
}

/// A function with a body.
#[derive(Debug)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// From `fn` to the closing brace.
    pub lines: RangeInclusive<usize>,
}

impl<'a> Source<'a> {
    /// Takes a file apart.
    pub fn new(text: &'a str) -> Self {
        Self { lines: text.lines().collect(), tokens: tokens(text) }
    }

    /// The lines with a word.
    pub fn lines_with(&self, word: &str) -> impl Iterator<Item = usize> {
        self.tokens.iter().filter(move |token| token.text == word).map(|token| token.line)
    }

    /// The functions, those within others too.
    pub fn functions(&self) -> impl Iterator<Item = Function<'a>> {
        self.tokens.windows(2).enumerate().filter_map(|(at, pair)| {
            let [keyword, name] = pair else { return None };
            // A function pointer type has a bracket where a function has its name.
            if keyword.text != "fn" || !name.text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                return None;
            }
            Some(Function { name: name.text, lines: keyword.line..=self.end_of_body(at)? })
        })
    }

    /// The lines of modules under `#[cfg(test)]`, from the attribute to the closing brace.
    pub fn test_lines(&self) -> Vec<RangeInclusive<usize>> {
        const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
        let starts = self.tokens.windows(ATTRIBUTE.len() + 1).enumerate();
        starts
            .filter(|(_, window)| {
                window.iter().zip(ATTRIBUTE).all(|(token, text)| token.text == text)
                    && window.last().is_some_and(|token| token.text == "mod")
            })
            .filter_map(|(at, window)| Some(window.first()?.line..=self.end_of_body(at + ATTRIBUTE.len())?))
            .collect()
    }

    /// Whether the comments before all code say something.
    pub fn head_says(&self, text: &str) -> bool {
        self.lines
            .iter()
            .take_while(|line| line.is_empty() || line.starts_with("//"))
            .any(|line| line.contains(text))
    }

    /// Whether the comments and attributes right above a line (the first is 1) say something.
    pub fn said_above(&self, line: usize, text: &str) -> bool {
        let above = self.lines.iter().take(line.saturating_sub(1)).rev().map(|line| line.trim_start());
        above
            .take_while(|line| line.starts_with("//") || line.starts_with("#["))
            .any(|line| line.contains(text))
    }

    /// The line of the brace that closes the body of the item at a token; none for an item without a body.
    fn end_of_body(&self, at: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for token in self.tokens.iter().skip(at) {
            match token.text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" => depth = depth.checked_sub(1)?,
                // The end of a block in a signature (of a const argument, say) looks the same: a body that ends a line early.
                "}" => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(token.line);
                    }
                }
                ";" if depth == 0 => return None,
                _ => {}
            }
        }
        None
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let length = skipped(rest).unwrap_or_else(|| {
            let length = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()).max(first.len_utf8());
            if let Some(text) = rest.get(..length) {
                tokens.push(Token { text, line });
            }
            length
        });
        let (taken, left) = rest.split_at_checked(length).unwrap_or((rest, ""));
        line += taken.matches('\n').count();
        rest = left;
    }
    tokens
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The length of a space, comment or literal that the text begins with.
fn skipped(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if first.is_whitespace() {
        return Some(first.len_utf8());
    }
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(block_comment(text));
    }
    let literal = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - literal.len();
    if prefix <= 1 && literal.starts_with('"') {
        return Some(prefix + quoted(literal, '"'));
    }
    if prefix <= 1 && literal.starts_with('\'') {
        return character(literal).map(|length| prefix + length);
    }
    let hashes = literal.strip_prefix('r')?;
    let quote = hashes.trim_start_matches('#');
    let count = hashes.len() - quote.len();
    let inner = quote.strip_prefix('"').filter(|_| prefix <= 1)?;
    let end = format!("\"{}", "#".repeat(count));
    let length = inner.find(&end).map_or(inner.len(), |at| at + end.len());
    Some(text.len() - inner.len() + length)
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of a literal up to its closing quote; a backslash protects what follows it.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == quote {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// The length of a character literal; none where the quote begins a lifetime, of which the name is then a word.
fn character(text: &str) -> Option<usize> {
    let mut chars = text.chars().skip(1);
    let inner = chars.next()?;
    if inner == '\\' || chars.next() == Some('\'') {
        return Some(quoted(text, '\''));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Source, tokens};

    fn words(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_literals_are_left_out() {
        assert_eq!(words("a /* b /* c */ d */ e // f\n g"), ["a", "e", "g"]);
        assert_eq!(words(r#"a("}\"{", b"x", c"y", '{', '\'', b'\\')"#).concat(), "a(,,,,,)");
        assert_eq!(words("r#\"{ \" \"# br\"\\\" x"), ["x"]);
        assert_eq!(words("fn a<'b>(c: &'b str)").join(" "), "fn a < ' b > ( c : & ' b str )");
        assert_eq!(words("bc cr rb r#type"), ["bc", "cr", "rb", "r", "#", "type"]);
    }

    #[test]
    fn functions_are_found() {
        let source = Source::new(
            "trait A { fn no(&self); fn yes(&self) -> [u8; 2] {\n [1, 2]\n } }\nfn outer() {\n fn inner() {}\n}\ntype F = fn(u8);\n",
        );
        let found: Vec<_> = source.functions().map(|f| (f.name, f.lines)).collect();
        assert_eq!(found, [("yes", 1..=3), ("outer", 4..=6), ("inner", 5..=5)]);
    }
}
