use super::*;

fn of(options: &str) -> Parsed {
    parse(&options.split(' ').map(str::to_owned).collect::<Vec<_>>())
}

/// Bits set and cleared.
fn attrs(options: &str) -> (u64, u64) {
    let MountAttrs { set, clear } = of(options).attrs;
    (set, clear)
}

fn recursive(options: &str) -> (u64, u64) {
    let MountAttrs { set, clear } = of(options).recursive_attrs;
    (set, clear)
}

#[test]
fn every_listed_option_is_understood() {
    for option in MOUNT_OPTIONS.iter().chain(&["idmap", "ridmap"]) {
        assert_eq!(of(option).data, [], "{option}");
    }
    assert!(MOUNT_OPTIONS.is_sorted());
}

#[test]
fn attributes_are_set_and_cleared() {
    for (set, clear, bit) in ATTRIBUTES {
        let directories = bit == MOUNT_ATTR_NODIRATIME;
        assert_eq!(attrs(set), (bit, if directories { 0x70 } else { 0 }), "{set}");
        assert_eq!(attrs(clear), (0, if directories { 0 } else { bit }), "{clear}");
        assert_eq!(recursive(&format!("r{set}")), (bit, 0), "r{set}");
        assert_eq!(recursive(&format!("r{clear}")), (0, bit), "r{clear}");
    }
    assert_eq!(attrs("ro nosuid nodev noexec"), (0xf, 0));
}

#[test]
fn the_later_option_wins() {
    assert_eq!(attrs("ro rw"), (0, 1));
    assert_eq!(attrs("rw ro"), (1, 0));
    assert_eq!(attrs("exec nosuid noexec suid"), (8, 2));
    assert_eq!(recursive("rro rrw"), (0, 1));
    assert_eq!(attrs("ro rrw"), (1, 0));
}

#[test]
fn access_times_exclude_each_other() {
    assert_eq!(attrs("noatime"), (0x10, 0x70));
    assert_eq!(attrs("strictatime"), (0x20, 0x70));
    assert_eq!(attrs("relatime"), (0, 0x70));
    assert_eq!(attrs("noatime strictatime"), (0x20, 0x70));
    assert_eq!(attrs("strictatime noatime nodiratime"), (0x90, 0x70));
    assert_eq!(recursive("rnoatime rstrictatime"), (0x20, 0x70));
}

#[test]
fn a_choice_of_access_times_is_taken_back() {
    for options in ["atime", "norelatime", "nostrictatime", "noatime atime", "strictatime nostrictatime"] {
        assert_eq!(attrs(options), (0, 0), "{options}");
        assert!(of(options).exact, "{options}");
    }
    assert!(!of("bind rprivate").exact);
    assert_eq!(attrs("nodiratime"), (0x80, 0x70));
    assert_eq!(attrs("nodiratime norelatime"), (0x80, 0x70));
    assert_eq!(attrs("noatime nostrictatime"), (0x10, 0x70));
    assert_eq!(attrs("strictatime norelatime"), (0x20, 0x70));
    for options in ["rrelatime", "ratime", "rnorelatime", "rnostrictatime"] {
        assert_eq!(recursive(options), (0, 0x70), "{options}");
    }
}

#[test]
fn superblock_flags_come_in_order() {
    let set = |options| of(options).set_flags().collect::<Vec<_>>();
    assert_eq!(set("sync lazytime dirsync mand"), ["dirsync", "lazytime", "mand", "sync"]);
    assert_eq!(set("sync async lazytime nolazytime mand nomand"), [""; 0]);
    assert_eq!(set("async sync"), ["sync"]);
    let cleared = |options| of(options).clear_flags().collect::<Vec<_>>();
    assert_eq!(cleared("sync async lazytime nolazytime mand nomand"), ["nolazytime", "nomand", "async"]);
    assert_eq!(cleared("async sync"), [""; 0]);
}

#[test]
fn propagation_keeps_its_order() {
    let expected = [
        Propagation { kind: PropagationKind::Private, recursive: true },
        Propagation { kind: PropagationKind::Shared, recursive: false },
    ];
    assert_eq!(of("rprivate shared").propagation, expected);
    assert_eq!(propagation("rrslave"), None);
    assert_eq!(propagation(""), None);
}

#[test]
fn binds_and_id_maps_may_be_recursive() {
    assert_eq!(of("bind").bind, Some(false));
    assert_eq!(of("rbind bind").bind, Some(true));
    assert_eq!(of("idmap").idmap, Some(false));
    assert_eq!(of("ridmap").idmap, Some(true));
}

#[test]
fn what_says_nothing_is_dropped() {
    assert_eq!(of("defaults silent loud iversion noiversion"), Parsed::default());
}

#[test]
fn the_rest_goes_to_the_file_system() {
    let pair = |key: &str, value: Option<&str>| (key.to_owned(), value.map(str::to_owned));
    assert_eq!(
        of("mode=755 acl size=65536k,nr_inodes=1k x= r").data,
        [
            pair("mode", Some("755")),
            pair("acl", None),
            pair("size", Some("65536k")),
            pair("nr_inodes", Some("1k")),
            pair("x", Some("")),
            pair("r", None),
        ]
    );
}

#[test]
fn security_contexts_hold_commas() {
    let data = of("context=\"system_u:object_r:c_t:s0:c1,c2\",mode=700 opt=\"a,b\"").data;
    assert_eq!(data[0].1.as_deref(), Some("system_u:object_r:c_t:s0:c1,c2"));
    assert_eq!(data[1].0, "mode");
    assert_eq!(data[2].1.as_deref(), Some("\"a,b\""));
}

#[test]
fn layers_of_an_overlay_hold_commas() {
    let data = of(r"lowerdir=/a\,b:/c\\,upperdir=/d").data;
    let values: Vec<_> = data.iter().filter_map(|(_, value)| value.as_deref()).collect();
    assert_eq!(values, [r"/a\,b:/c\\", "/d"]);
}
