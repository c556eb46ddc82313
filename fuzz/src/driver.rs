//! Feeds a target with mutations of its corpus.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use serde_json::Value;

use crate::Target;
use crate::mutate::{Random, mutate, mutate_document};

/// An input that breaks a promise.
#[derive(Debug)]
pub struct Finding {
    /// How many inputs were tried before.
    pub run: u64,
    /// It.
    pub input: Vec<u8>,
    /// What the panic said.
    pub message: String,
}

/// Runs a target on its corpus, then on `runs` mutations of it; the first finding ends it.
///
/// # Errors
///
/// The finding.
pub fn run(target: &Target, runs: u64, seed: u64, corpus: &[Vec<u8>]) -> Result<(), Finding> {
    let dictionary = dictionary(corpus);
    let mut random = Random::new(seed);
    let attempt = |run: u64, input: &[u8]| {
        catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|panic| Finding {
            run,
            input: input.to_vec(),
            message: panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                .unwrap_or_default(),
        })
    };
    for input in corpus {
        attempt(0, input)?;
    }
    let documents: Vec<Value> =
        corpus.iter().filter_map(|input| serde_json::from_slice(input).ok()).collect();
    let mut document = Value::Null;
    let mut input = Vec::new();
    for run in 1..=runs {
        // Where the inputs are documents, most mutations leave them so.
        if !documents.is_empty() && run / 8 % 4 != 0 {
            if run % 8 == 1 || document.is_null() {
                document = documents[random.below(documents.len())].clone();
            }
            mutate_document(&mut document, &documents, &mut random);
            attempt(run, document.to_string().as_bytes())?;
            continue;
        }
        // Mutations add up for a while, then begin from the corpus again.
        if run % 8 == 1 || input.is_empty() {
            input.clear();
            if !corpus.is_empty() {
                input.extend_from_slice(&corpus[random.below(corpus.len())]);
            }
        }
        mutate(&mut input, corpus, &dictionary, &mut random);
        attempt(run, &input)?;
    }
    Ok(())
}

/// The words of a corpus, for putting one in another's place.
fn dictionary(corpus: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || b"_-./".contains(b);
    let mut words: Vec<Vec<u8>> = corpus
        .iter()
        .flat_map(|input| input.split(move |b| !is_word(b)))
        .filter(|word| (2..40).contains(&word.len()))
        .map(<[u8]>::to_vec)
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// The files of a target's corpus, in the order of their names, after what it has built in.
///
/// # Errors
///
/// The directory cannot be read; a missing one is an empty one.
pub fn corpus(target: &Target, dir: &Path) -> std::io::Result<Vec<Vec<u8>>> {
    let mut inputs = (target.seeds)();
    let dir = dir.join(target.name);
    if dir.is_dir() {
        let mut files: Vec<_> = std::fs::read_dir(dir)?.collect::<Result<Vec<_>, _>>()?;
        files.sort_by_key(std::fs::DirEntry::file_name);
        for file in files {
            inputs.push(std::fs::read(file.path())?);
        }
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted(bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        // A number that is cut off: the fault of CVE-2026-30892.
        if let Some(number) = text.strip_prefix("uid:").and_then(|n| n.parse::<u64>().ok()) {
            assert!(u32::try_from(number).is_ok(), "wraps around");
        }
    }

    #[test]
    fn a_planted_fault_is_found_and_found_again() {
        let target = Target { name: "planted", run: planted, seeds: || vec![b"uid:1".to_vec()] };
        let seeds = (target.seeds)();
        let found = run(&target, 100_000, 1, &seeds).unwrap_err();
        assert_eq!(found.message, "wraps around");
        let again = run(&target, 100_000, 1, &seeds).unwrap_err();
        assert_eq!((found.run, found.input), (again.run, again.input));
    }

    #[test]
    fn every_target_takes_its_corpus_and_some_mutations_of_it() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
        for target in crate::TARGETS {
            let corpus = corpus(target, &dir).unwrap();
            assert!(!corpus.is_empty(), "{}", target.name);
            if let Err(finding) = run(target, 300, 7, &corpus) {
                panic!("{}: {finding:?}", target.name);
            }
        }
    }
}
