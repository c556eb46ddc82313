use super::{clap, commands, man, overview};

/// clap checks itself for names that occur twice and the like.
#[test]
fn clap_takes_the_tables() {
    clap::program().debug_assert();
}

#[test]
fn each_command_and_flag_has_its_place_in_a_page() {
    let pages = man::pages();
    let page = |name: &str| &pages.iter().find(|(file, _)| file == name).unwrap().1;
    for command in commands() {
        let text = page(&format!("brig-{}.8", command.name));
        assert!(text.starts_with(".ie"), "{text}");
        assert!(text.contains(&command.summary.replace('-', "\\-")), "{text}");
        for flag in command.flags.iter().filter(|flag| !flag.hidden) {
            let name = format!("\\-\\-{}", flag.name.replace('-', "\\-"));
            assert!(text.contains(&name), "{name} is not in {text}");
        }
        assert!(page("brig.8").contains(&format!("brig\\-{}", command.name)));
    }
}

#[test]
fn the_overview_is_replaced_and_nothing_else() {
    let text = "a\n<!-- from the flag tables: cargo xtask overview -->\nold\n<!-- to here -->\nb\n";
    let new = overview::replace(text).unwrap();
    assert!(new.starts_with("a\n<!--") && new.ends_with("<!-- to here -->\nb\n"), "{new}");
    assert!(new.contains("| `create` |") && !new.contains("old"), "{new}");
    assert_eq!(overview::replace(&new).unwrap(), new);
    overview::replace("no place").unwrap_err();
}
