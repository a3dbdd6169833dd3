use std::fmt::Debug;

use bytes::Bytes;
use pleach_engine::Key;
use proptest::prelude::*;

use super::*;

/// Bytes that meet the special cases of escaping more often than chance would.
fn tricky_bytes() -> impl Strategy<Value = Vec<u8>> {
    let tricky = prop::sample::select(b"..//--==__zz~ aA0\x00\xff".to_vec());
    prop::collection::vec(prop_oneof![3 => tricky, 1 => any::<u8>()], 0..40)
}

fn tricky_text() -> impl Strategy<Value = String> {
    prop_oneof!["[./_=z ~a\u{0}é-]{0,20}", any::<String>()].prop_filter("it fits", |text| text.len() < 300)
}

fn keys() -> impl Strategy<Value = Key> {
    prop_oneof!["[-/_=a-zA-Z0-9.]{1,30}", "(-2e|-|z7a|_5f|=3d|[a-c]|\\.){1,8}", "=?[A-Za-z0-9_-]{0,12}"]
        .prop_filter_map("it is a key", |text| Key::parse(text).ok())
}

fn survives<K>(codec: &impl KeyCodec<K>, key: &K)
where
    K: ToOwned + ?Sized + PartialEq + Debug,
    K::Owned: std::borrow::Borrow<K>,
{
    use std::borrow::Borrow;
    let stored = codec.encode(key).unwrap();
    assert_eq!(codec.decode(&stored).unwrap().borrow(), key);
}

/// Decoding does not panic, and accepts only what encoding would give.
fn accepts_only_its_own<K>(codec: &impl KeyCodec<K>, stored: &Key)
where
    K: ToOwned + ?Sized,
    K::Owned: std::borrow::Borrow<K>,
{
    use std::borrow::Borrow;
    if let Ok(key) = codec.decode(stored) {
        assert_eq!(codec.encode(key.borrow()).unwrap(), *stored);
    }
}

proptest! {
    #[test]
    fn every_byte_string_survives_its_key(bytes in tricky_bytes()) {
        survives::<[u8]>(&Escape, &bytes);
        survives::<[u8]>(&Base64Url, &bytes);
    }

    #[test]
    fn every_text_survives_its_key(text in tricky_text()) {
        survives::<str>(&Escape, &text);
        survives::<str>(&Base64Url, &text);
        survives::<str>(&Path, &format!("/{text}"));
    }

    #[test]
    fn escaped_keys_sort_as_what_they_encode(a in tricky_bytes(), b in tricky_bytes()) {
        let (stored_a, stored_b) = (Escape.encode(&a[..]).unwrap(), Escape.encode(&b[..]).unwrap());
        prop_assert_eq!(stored_a.cmp(&stored_b), a.cmp(&b));
    }

    #[test]
    fn escaped_paths_sort_as_what_they_encode(a in tricky_text(), b in tricky_text()) {
        let (a, b) = (format!("/{a}"), format!("/{b}"));
        prop_assert_eq!(Path.encode(&a).unwrap().cmp(&Path.encode(&b).unwrap()), a.cmp(&b));
    }

    #[test]
    fn an_escaped_prefix_selects_exactly_what_starts_with_it(
        (bytes, cut) in tricky_bytes().prop_flat_map(|bytes| { let n = bytes.len(); (Just(bytes), 0..=n) }),
        other in tricky_bytes(),
    ) {
        let range = Escape.prefix(&bytes[..cut]);
        for candidate in [&bytes, &other] {
            let stored = Escape.encode(&candidate[..]).unwrap();
            prop_assert_eq!(range.contains(stored.as_bytes()), candidate.starts_with(&bytes[..cut]));
        }
    }

    #[test]
    fn key_codecs_accept_only_what_they_would_write(key in keys()) {
        accepts_only_its_own::<[u8]>(&Escape, &key);
        accepts_only_its_own::<str>(&Escape, &key);
        accepts_only_its_own::<str>(&Path, &key);
        accepts_only_its_own::<[u8]>(&Base64Url, &key);
        accepts_only_its_own::<str>(&Base64Url, &key);
    }

    #[test]
    fn compressed_bytes_survive(
        run in any::<u8>(), length in 0_usize..5_000, tail in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = Bytes::from([vec![run; length], tail].concat());
        let stored = Lz4::default().encode(&bytes).unwrap();
        prop_assert_eq!(Lz4::default().decode(&stored).unwrap(), bytes.clone());
        #[cfg(feature = "zstd")]
        {
            let stored = Zstd::default().encode(&bytes).unwrap();
            prop_assert_eq!(Zstd::default().decode(&stored).unwrap(), bytes);
        }
    }

    #[test]
    fn decoders_take_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let bytes = Bytes::from(bytes);
        let small = Lz4 { decoded_bytes_max: 1024 };
        if let Ok(decoded) = small.decode(&bytes) {
            prop_assert!(decoded.len() <= small.decoded_bytes_max);
        }
        #[cfg(feature = "zstd")]
        if let Ok(decoded) = (Zstd { decoded_bytes_max: 1024, ..Zstd::default() }).decode(&bytes) {
            prop_assert!(decoded.len() <= 1024);
        }
        let _ = ValueCodec::<serde_json::Value>::decode(&Json, &bytes);
        let _ = Text.decode(&bytes);
    }

    #[test]
    fn a_changed_byte_never_makes_decoding_panic(at in 0_usize..60, with in any::<u8>()) {
        let value = Bytes::from("a long, long, long, long and repetitive text ".repeat(20));
        let mut stored = Lz4::default().encode(&value).unwrap().to_vec();
        let at = at % stored.len();
        stored[at] = with;
        let _ = Lz4::default().decode(&stored.into());
        #[cfg(feature = "zstd")]
        {
            let mut stored = Zstd::default().encode(&value).unwrap().to_vec();
            let at = at % stored.len();
            stored[at] = with;
            let _ = Zstd::default().decode(&stored.into());
        }
    }
}

#[test]
fn escaping_writes_what_the_documentation_draws() {
    for (text, stored) in [
        ("", "-"),
        ("a.", "a.-"),
        ("a..", "a.-2e"),
        (".a", "-2ea"),
        ("user.42", "user.42"),
        ("café/é", "cafzc3za9/zc3za9"),
        ("_kv", "_5fkv"),
        ("pizza", "piz7az7aa"),
    ] {
        assert_eq!(Escape.encode(text).unwrap().as_str(), stored);
    }
    for (path, stored) in [("/", "-"), ("/a/b c/", "a.b-20c.-"), ("//a", "-2fa"), ("/a.b", "a-2eb")] {
        assert_eq!(Path.encode(path).unwrap().as_str(), stored);
    }
}

#[test]
fn base64url_avoids_empty_and_reserved_keys() {
    assert_eq!(Base64Url.encode("").unwrap().as_str(), "=");
    let reserved = [0xfe, 0x4b, 0xef];
    assert_eq!(Base64Url.encode(&reserved[..]).unwrap().as_str(), "=_kvv");
    survives::<[u8]>(&Base64Url, &reserved);
}

#[test]
fn a_key_that_grows_too_long_is_refused() {
    assert!(matches!(Escape.encode(" ".repeat(400).as_str()), Err(CodecError::Key(_))));
    assert!(matches!(Base64Url.encode("a".repeat(1000).as_str()), Err(CodecError::Key(_))));
}

#[test]
fn a_length_that_is_declared_too_large_is_refused_before_memory_is_taken() {
    let declared = |bytes: u32| Bytes::from([&bytes.to_le_bytes()[..], b"\x10a"].concat());
    let error = Lz4::default().decode(&declared(u32::MAX)).unwrap_err();
    assert!(matches!(error, CodecError::TooLarge { bytes: 4_294_967_295, limit: DECODED_BYTES_MAX, .. }));
    let error = Lz4::default().decode(&declared(60 * 1024 * 1024)).unwrap_err();
    assert!(matches!(error, CodecError::Malformed { .. }));
    #[cfg(feature = "zstd")]
    {
        let stored = Zstd::default().encode(&vec![0; 2_000].into()).unwrap();
        let error = Zstd { decoded_bytes_max: 1_999, ..Zstd::default() }.decode(&stored).unwrap_err();
        assert!(matches!(error, CodecError::TooLarge { bytes: 2_000, limit: 1_999, .. }));
        // A frame that says it has 2^63 bytes, read by someone who set no limit.
        let hostile = Bytes::from_static(b"\x28\xb5\x2f\xfd\xe0\0\0\0\0\0\0\0\x80\x01\0\0");
        let error = Zstd { decoded_bytes_max: usize::MAX, ..Zstd::default() }.decode(&hostile).unwrap_err();
        assert!(matches!(error, CodecError::Malformed { .. }), "{error}");
    }
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let small = Lz4 { decoded_bytes_max: 3 };
    assert!(matches!(small.encode(&"four".into()), Err(CodecError::TooLarge { bytes: 4, limit: 3, .. })));
    assert!(small.encode(&"fit".into()).is_ok());
}

#[test]
fn value_codecs_compose_in_the_order_they_are_named() {
    let codec = Json.then(Lz4::default()).then(Lz4::default());
    let value = vec!["apples".to_owned(); 100];
    let stored = codec.encode(&value).unwrap();
    let inner = Lz4::default().decode(&Lz4::default().decode(&stored).unwrap()).unwrap();
    assert_eq!(inner, serde_json::to_vec(&value).unwrap());
    let decoded: Vec<String> = codec.decode(&stored).unwrap();
    assert_eq!(decoded, value);
}

#[test]
fn deeply_nested_json_is_an_error() {
    let deep = Bytes::from("[".repeat(100_000));
    assert!(ValueCodec::<serde_json::Value>::decode(&Json, &deep).is_err());
}
