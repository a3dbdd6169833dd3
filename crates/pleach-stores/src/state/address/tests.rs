use pleach_engine::KEY_BYTES_MAX as ENGINE_KEY_BYTES_MAX;

use super::super::{KEY_BYTES_MAX, OWNER_ID_BYTES_MAX};
use super::*;

fn user(id: &str) -> Principal {
    Principal::user(id).unwrap()
}

fn contract(text: &str) -> ContractId {
    ContractId::parse(text).unwrap()
}

#[test]
fn the_longest_parts_make_a_key() {
    let longest_contract = contract(&format!("{}@v999999", "a".repeat(ContractId::CHARS_MAX - 8)));
    let store = "s".repeat(pleach_contract::NAME_CHARS_MAX);
    let widest = "\u{10ffff}".repeat(KEY_BYTES_MAX / 4);
    assert_eq!(widest.len(), KEY_BYTES_MAX);
    let mut longest = 0;
    for bytes in [1, PLAIN_OWNER_BYTES_MAX, PLAIN_OWNER_BYTES_MAX + 1, OWNER_ID_BYTES_MAX] {
        for principal in [user(&"u".repeat(bytes)), Principal::device("d".repeat(bytes)).unwrap()] {
            let namespace = Namespace::new(&principal, &longest_contract, &store);
            let key = namespace.key(Some(&widest)).expect("it fits");
            assert_eq!(namespace.raw(&key).as_deref(), Some(widest.as_str()));
            longest = longest.max(key.as_bytes().len());
        }
    }
    assert_eq!(longest, 1008);
    assert!(longest <= ENGINE_KEY_BYTES_MAX);
}

#[test]
fn a_stored_key_tells_its_place() {
    let notes = contract("acme.notes-app@v12");
    for key in [None, Some("a"), Some(".*>\u{0}\u{ffff}/ü")] {
        let stored = Namespace::new(&user("ann"), &notes, "drafts").key(key).unwrap();
        let place = place_of(&stored).expect("State made it");
        assert_eq!(
            (place.contract, place.store.as_str(), place.key.as_deref()),
            (notes.clone(), "drafts", key)
        );
    }
    for stray in [
        "u.ann",
        "u.0.acme/notes=v1",
        "u.0.acme.drafts",
        "u.0.acme/notes=v1.drafts.=",
        "u.0.acme/notes=v1.s.0z.0",
    ] {
        assert_eq!(place_of(&Key::parse(stray).unwrap()), None, "{stray}");
    }
}

#[test]
fn a_long_id_is_digested_and_taken_for_no_other() {
    let long = "x".repeat(PLAIN_OWNER_BYTES_MAX + 1);
    let digested = owner_prefix(&user(&long));
    let token = digested.strip_prefix("u.").unwrap();
    assert_ne!(owner_prefix(&user(token)), digested, "an id that looks like a digest");
    assert_ne!(owner_prefix(&user(&format!("{long}x"))), digested);
    assert_ne!(owner_prefix(&Principal::device(long).unwrap()), digested);
}

#[test]
fn a_range_holds_what_begins_with_its_start_and_goes_on() {
    let namespace = Namespace::new(&user("ann"), &contract("acme.notes@v1"), "drafts");
    let keys = ["a", "a/", "a/b", "a/b/", "a/b/c", "a/b/\u{10ffff}", "a/b0", "a/bc", "b", "ä", "\u{10ffff}"];
    for start in ["", "a", "a/", "a/b/", "ä", "\u{10ffff}", "zzz"] {
        let range = namespace.range(start);
        for key in keys {
            let inside = range.contains(namespace.key(Some(key)).unwrap().as_bytes());
            assert_eq!(inside, key.starts_with(start) && key != start, "{key:?} in {start:?}");
        }
        assert!(!range.contains(namespace.key(None).unwrap().as_bytes()));
    }
}
