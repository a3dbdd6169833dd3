use serde_json::{Value, json};

use super::super::*;
use super::given::*;

/// Texts that another way of making keys would take for each other or for something else.
fn hostile() -> Vec<String> {
    let texts = [
        "a",
        "A",
        "a.",
        ".a",
        "a.b",
        "a..b",
        ".",
        "..",
        "*",
        ">",
        "a.*",
        "a.>",
        "/",
        "a/b",
        "a/",
        "//",
        "=",
        "==",
        "-",
        "_",
        "_kv",
        "%2e",
        "a%2eb",
        "\\",
        "\\u0061",
        "u",
        "d",
        "u.a",
        "user:a",
        "device:a",
        " ",
        "a ",
        "\t",
        "\n",
        "\0",
        "a\0",
        "\0a",
        "\u{7f}",
        "\u{85}",
        "ü",
        "u\u{308}",
        "日本語",
        "עברית",
        "🙂",
        "\u{200b}",
        "\u{202e}a",
        "\u{feff}a",
        "\u{d7ff}",
        "\u{e000}",
        "\u{fffd}",
        "\u{ffff}",
        "\u{10000}",
        "\u{10ffff}",
        "null",
        "undefined",
        "r1",
        "{}",
        "\"",
        "'; drop",
        "$KV",
        "pleach_state",
    ];
    let mut all: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    for bytes in [95, 96, 97, 98, 511, 512] {
        all.push("x".repeat(bytes));
        all.push(format!("{}y", "x".repeat(bytes - 1)));
    }
    all
}

pub(super) async fn principals_with_hostile_ids_share_nothing(given: Given) {
    let compiled = given.accepted(&first());
    let principals: Vec<Principal> = hostile()
        .into_iter()
        .chain(["x".repeat(OWNER_ID_BYTES_MAX), "x".repeat(OWNER_ID_BYTES_MAX - 1)])
        .flat_map(|id| [Principal::user(id.clone()).unwrap(), Principal::device(id).unwrap()])
        .collect();
    for principal in &principals {
        let session = given.state.session(principal.clone(), &compiled);
        let mine = json!({"theme": principal.to_string()});
        let create = expecting(Expect::Absent);
        let _ = applied(session.value::<Value>("preferences").unwrap().put_with(&mine, create).await);
        let title = draft(&principal.to_string());
        let _ = applied(session.map::<Value>("drafts").unwrap().put_with("same", &title, create).await);
    }
    for principal in &principals {
        let session = given.state.session(principal.clone(), &compiled);
        let preferences = found(session.value::<Value>("preferences").unwrap().get().await);
        assert_eq!(preferences.value["theme"], json!(principal.to_string()));
        let page = session.map::<Value>("drafts").unwrap().list(ListOptions::first(10)).await.unwrap();
        assert_eq!((keys(&page), page.count), (vec!["same"], 1), "{principal}");
    }
    // Deleting takes one's own.
    for principal in &principals {
        let session = given.state.session(principal.clone(), &compiled);
        assert_eq!(
            session.map::<Value>("drafts").unwrap().delete("same").await.unwrap(),
            DeleteOutcome::Deleted
        );
        assert_eq!(
            session.value::<Value>("preferences").unwrap().delete().await.unwrap(),
            DeleteOutcome::Deleted
        );
    }
}

pub(super) async fn hostile_keys_are_keys_like_others(given: Given) {
    let (drafts, other) =
        (given.drafts(), given.session("user:bob", &first()).map::<Value>("drafts").unwrap());
    let mut names = hostile();
    for name in &names {
        let _ = applied(drafts.put_with(name, &draft(name), expecting(Expect::Absent)).await);
    }
    names.sort_unstable_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    let page = drafts.list(ListOptions::first(100)).await.unwrap();
    assert_eq!((keys(&page).len(), page.count), (names.len().min(100), names.len() as u64));
    assert_eq!(keys(&page), names[..names.len().min(100)]);
    for name in &names {
        assert_eq!(found(drafts.get(name).await).value, draft(name), "{name:?}");
        assert_eq!(other.get(name).await.unwrap(), GetOutcome::Absent);
        assert_eq!(other.delete(name).await.unwrap(), DeleteOutcome::NotDeleted);
    }
    assert_eq!(other.count().await.unwrap(), 0);
}

pub(super) async fn contracts_and_stores_share_nothing(given: Given) {
    let stores = json!({
        "a": {"kind": "map", "schema": {"schema": "Any"}},
        "a-b": {"kind": "map", "schema": {"schema": "Any"}},
        "b": {"kind": "value", "schema": {"schema": "Any"}},
    });
    let ids =
        ["acme.notes@v1", "acme.notes@v10", "acme.notes@v2", "acme@v1", "acme-notes@v1", "acme.notes.a@v1"];
    for id in ids {
        let session = given.session("user:ann", &contract(id, stores.clone()));
        for store in ["a", "a-b"] {
            let _ = applied(session.map::<Value>(store).unwrap().put("b", &json!([id, store])).await);
        }
        let _ = applied(session.value::<Value>("b").unwrap().put(&json!([id, "b"])).await);
    }
    for id in ids {
        let session = given.session("user:ann", &contract(id, stores.clone()));
        for store in ["a", "a-b"] {
            let map = session.map::<Value>(store).unwrap();
            assert_eq!(
                (found(map.get("b").await).value, map.count().await.unwrap()),
                (json!([id, store]), 1)
            );
        }
        assert_eq!(found(session.value::<Value>("b").unwrap().get().await).value, json!([id, "b"]));
    }
    // A store that changed its kind begins anew; what it held as the other kind is not seen, and not lost.
    let changed = json!({"b": {"kind": "map", "schema": {"schema": "Any"}}});
    let session = given.session("user:ann", &contract("acme@v1", changed));
    assert_eq!(session.map::<Value>("b").unwrap().count().await.unwrap(), 0);
    let session = given.session("user:ann", &contract("acme@v1", stores));
    assert_eq!(found(session.value::<Value>("b").unwrap().get().await).value, json!(["acme@v1", "b"]));
}
