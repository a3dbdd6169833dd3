use futures_util::StreamExt;
use pleach_engine::{Batch, Engine, Headers, Operation};
use serde_json::Value;

use super::super::*;
use super::given::*;
use super::meddler::Taken;

/// Puts `count` drafts of Ann's at once, named by number, past State: as it would have written them.
pub(super) async fn fill(given: &Given, count: usize) {
    let mut headers = Headers::new();
    headers.set("Pleach-Version", "v1").unwrap();
    headers.set("Pleach-Contract", first().digest().as_str()).unwrap();
    let namespace = namespace("user:ann", "drafts");
    let put = |number: usize| {
        let key = namespace.key(Some(&format!("{number:06}"))).unwrap();
        Operation::put(key, draft("x").to_string()).with_headers(headers.clone())
    };
    for start in (0..count).step_by(1000) {
        let batch: Batch = (start..count.min(start + 1000)).map(put).collect();
        given.engine.commit(&given.bucket(), batch).await.unwrap();
    }
}

pub(super) async fn a_list_is_in_the_byte_order_of_keys(given: Given) {
    let drafts = given.drafts();
    let mut names = vec![
        "a",
        "A",
        "a/b",
        "a.b",
        "ab",
        "a b",
        "z",
        "ä",
        "10",
        "9",
        "\u{ffff}",
        "\u{10000}",
        "\u{1}",
        "a\u{0}",
    ];
    for name in &names {
        let _ = applied(drafts.put(name, &draft(name)).await);
    }
    names.sort_unstable_by_key(|name| name.as_bytes());
    let page = drafts.list(ListOptions::first(100)).await.unwrap();
    assert_eq!(keys(&page), names);
    for (number, name) in names.iter().enumerate() {
        let page = drafts.list(ListOptions::first(1).from(number as u64)).await.unwrap();
        assert_eq!(keys(&page), [*name]);
    }
}

pub(super) async fn pages_tell_the_count_and_the_next_offset(given: Given) {
    fill(&given, 25).await;
    let drafts = given.drafts();
    let (mut offset, mut seen) = (Some(0), Vec::new());
    while let Some(next) = offset {
        let page = drafts.list(ListOptions::first(10).from(next)).await.unwrap();
        assert_eq!((page.count, page.offset, page.limit), (25, next, 10));
        seen.extend(keys(&page).iter().map(|key| (*key).to_owned()));
        offset = page.next_offset;
    }
    let all: Vec<String> = (0..25).map(|number| format!("{number:06}")).collect();
    assert_eq!(seen, all);
    let exact = drafts.list(ListOptions::first(5).from(20)).await.unwrap();
    assert_eq!((exact.entries.len(), exact.next_offset), (5, None));
    let end = drafts.list(ListOptions::first(5).from(25)).await.unwrap();
    assert_eq!((end.entries.len(), end.count, end.next_offset), (0, 25, None));
}

pub(super) async fn pages_are_live(given: Given) {
    fill(&given, 4).await;
    let drafts = given.drafts();
    let page = drafts.list(ListOptions::first(2)).await.unwrap();
    assert_eq!((keys(&page), page.count, page.next_offset), (vec!["000000", "000001"], 4, Some(2)));
    // What is written or goes before the next page moves it.
    let _ = applied(drafts.put("000000/a", &draft("x")).await);
    let page = drafts.list(ListOptions::first(2).from(2)).await.unwrap();
    assert_eq!((keys(&page), page.count, page.next_offset), (vec!["000001", "000002"], 5, Some(4)));
    for key in ["000000", "000000/a"] {
        assert_eq!(drafts.delete(key).await.unwrap(), DeleteOutcome::Deleted);
    }
    let page = drafts.list(ListOptions::first(2).from(2)).await.unwrap();
    assert_eq!((keys(&page), page.count, page.next_offset), (vec!["000003"], 3, None));
}

pub(super) async fn a_page_of_nothing_counts(given: Given) {
    fill(&given, 3).await;
    let page = given.drafts().list(ListOptions::first(0)).await.unwrap();
    assert_eq!((page.entries.len(), page.count, page.next_offset), (0, 3, None));
    assert_eq!(given.drafts().count().await.unwrap(), 3);
    let empty = given.drafts().prefix("none").list(ListOptions::first(10)).await.unwrap();
    assert_eq!((empty.entries.len(), empty.count, empty.next_offset), (0, 0, None));
}

pub(super) async fn a_page_has_a_limit_and_past_the_end_it_is_empty(given: Given) {
    fill(&given, 3).await;
    let drafts = given.drafts();
    assert!(drafts.list(ListOptions::first(LIST_LIMIT_MAX)).await.is_ok());
    for limit in [LIST_LIMIT_MAX + 1, usize::MAX] {
        let refused = drafts.list(ListOptions::first(limit)).await;
        assert!(matches!(refused, Err(StateError::LimitTooLarge { max: LIST_LIMIT_MAX, .. })));
    }
    for offset in [4, u64::MAX] {
        for limit in [0, 1, 100] {
            let page = drafts.list(ListOptions::first(limit).from(offset)).await.unwrap();
            assert_eq!((page.count, page.offset, page.limit, page.next_offset), (3, offset, limit, None));
            assert!(page.entries.is_empty(), "{offset} {limit}");
        }
    }
}

pub(super) async fn a_view_has_what_is_below_its_path(given: Given) {
    let drafts = given.drafts();
    let names = ["a", "a/b", "a/b/", "a/b/c", "a/b/c/d", "a/b//e", "a/bc", "a/b0", "b/c", "/a/b/c"];
    for name in names {
        let _ = applied(drafts.put(name, &draft(name)).await);
    }
    for path in ["a/b", "/a//b/", "a/b/"] {
        let view = drafts.prefix(path);
        let page = view.list(ListOptions::first(10)).await.unwrap();
        assert_eq!((keys(&page), page.count), (vec!["-", "c", "c/d"], 3), "{path}");
        for cell in &page.entries[1..] {
            let Cell::Entry(entry) = cell else { panic!("{cell:?}") };
            let key = entry.key.as_deref().unwrap();
            assert_eq!(&found(view.get(key).await), entry, "a key of a view is for that view");
            assert_eq!(entry.value, draft(&format!("a/b/{key}")));
        }
    }
    for path in ["", "/", "//"] {
        assert_eq!(drafts.prefix(path).count().await.unwrap(), names.len() as u64, "{path}");
    }
}

pub(super) async fn views_compose_and_their_keys_are_relative(given: Given) {
    let drafts = given.drafts();
    let view = drafts.prefix("inspection").prefix("active");
    let put = applied(view.put("open", &draft("one")).await);
    assert_eq!(put.key.as_deref(), Some("open"));
    assert_eq!(found(drafts.get("inspection/active/open").await).value, draft("one"));
    assert_eq!(found(drafts.prefix("inspection/active").get("open").await), put);
    let again = view.put_with("open", &draft("two"), expecting(Expect::Absent)).await.unwrap();
    assert_eq!(again, PutOutcome::Present(put));
    assert_eq!(view.delete("open").await.unwrap(), DeleteOutcome::Deleted);
    assert_eq!(drafts.count().await.unwrap(), 0);
}

pub(super) async fn the_keys_of_a_view_are_paths(given: Given) {
    let drafts = given.drafts();
    let view = drafts.prefix("a");
    for (number, path) in ["/b/open", "b//open", "b/open/", "//b///open//"].into_iter().enumerate() {
        let title = draft(&number.to_string());
        let put = applied(view.put(path, &title).await);
        assert_eq!(put.key.as_deref(), Some("b/open"), "{path}");
        for same in [drafts.prefix("a/b").get("/open").await, drafts.prefix("").get("/a/b/open").await] {
            assert_eq!(found(same).value, title, "{path}");
        }
        assert_eq!(found(drafts.get("a/b/open").await).revision, put.revision);
        assert_eq!(drafts.count().await.unwrap(), 1, "{path}");
        assert_eq!(view.delete(path).await.unwrap(), DeleteOutcome::Deleted);
    }
    for nothing in ["", "/", "//"] {
        assert!(matches!(view.get(nothing).await, Err(StateError::KeyMissing { .. })), "{nothing:?}");
    }
    // The whole map takes any text. What no path names counts in the view, and cannot be mistaken for another entry.
    let mut events = view.watch(WatchFrom::Now).await.unwrap();
    for key in ["a/open", "a//open"] {
        let _ = applied(drafts.put(key, &draft(key)).await);
    }
    let page = view.list(ListOptions::first(10)).await.unwrap();
    let [Cell::Bad(odd), Cell::Entry(open)] = &page.entries[..] else { panic!("{page:?}") };
    assert_eq!((&odd.key, open.key.as_deref(), page.count), (&None, Some("open"), 2));
    assert!(matches!(&odd.error, StateError::NotInView { place } if place == "drafts/a//open"), "{odd:?}");
    assert_eq!(view.delete("/open").await.unwrap(), DeleteOutcome::Deleted);
    assert_eq!(found(drafts.get("a//open").await).value, draft("a//open"));
    assert_eq!(drafts.delete("a//open").await.unwrap(), DeleteOutcome::Deleted);
    let mut told = Vec::new();
    for _ in 0..4 {
        let event = events.next().await.unwrap().unwrap();
        told.push((matches!(event, StateEvent::Put(_)), event.key().map(str::to_owned)));
    }
    let open = || Some("open".to_owned());
    assert_eq!(told, [(true, open()), (true, None), (false, open()), (false, None)]);
}

pub(super) async fn a_prefix_has_a_limit(given: Given) {
    let drafts = given.drafts();
    let longest = drafts.prefix(&"p".repeat(KEY_BYTES_MAX));
    assert_eq!(longest.count().await.unwrap(), 0);
    assert!(matches!(longest.put("a", &draft("x")).await, Err(StateError::KeyTooLong { .. })));
    for longer in
        [drafts.prefix(&"p".repeat(KEY_BYTES_MAX + 1)), drafts.prefix(&"p/".repeat(300)), longest.prefix("x")]
    {
        let refused =
            |error: StateError| assert!(matches!(error, StateError::PrefixTooLong { .. }), "{error}");
        refused(longer.list(ListOptions::first(1)).await.unwrap_err());
        refused(longer.count().await.unwrap_err());
        refused(longer.watch(WatchFrom::Now).await.err().unwrap());
    }
    let store = given.ann().store("drafts").unwrap();
    let refused = store.list(&"p".repeat(KEY_BYTES_MAX + 1), ListOptions::first(1)).await;
    assert!(matches!(refused, Err(StateError::PrefixTooLong { bytes: 513, limit: KEY_BYTES_MAX })));
}

/// How many entries a large map has.
fn many(given: &Given) -> usize {
    if given.is_exact { 100_000 } else { 12_000 }
}

pub(super) async fn a_page_reads_no_value_outside_it(given: Given) {
    let many = many(&given);
    fill(&given, many).await;
    let drafts = given.drafts();
    for offset in [0, 1, 9_901, 10_000, 11_001, many - 100, many - 1, many] {
        given.engine.taken();
        let page = drafts.list(ListOptions::first(100).from(offset as u64)).await.unwrap();
        let taken = given.engine.taken();
        assert_eq!(page.count, many as u64);
        assert_eq!(page.entries.len(), (many - offset).min(100));
        let first = if offset == many { "end".to_owned() } else { format!("{offset:06}") };
        assert_eq!(page.entries.first().and_then(Cell::key).unwrap_or("end"), first);
        assert_eq!(taken.values, page.entries.len(), "only the values of the page");
        let before = if offset == 0 { 0 } else { offset + page.entries.len() };
        assert_eq!(taken.keys, before, "only the keys up to its end");
        // Keys come 10,000 at a time; then the values, and the count.
        assert!(taken.calls <= before.div_ceil(10_000) + 2, "{offset}: {taken:?}");
    }
    given.engine.taken();
    assert_eq!(drafts.count().await.unwrap(), many as u64);
    assert_eq!(given.engine.taken(), Taken { calls: 1, values: 0, keys: 0 }, "a count reads no entry");
}

pub(super) async fn an_entry_costs_the_same_however_many_there_are(given: Given) {
    let drafts = given.drafts();
    let _ = applied(drafts.put("002500", &draft("x")).await);
    let few = costs(&given, &drafts).await;
    fill(&given, many(&given)).await;
    assert_eq!(costs(&given, &drafts).await, few);
    let [get, put, stale, update, delete, create] = few[..] else { panic!("{few:?}") };
    assert_eq!(get, Taken { calls: 1, values: 1, keys: 0 });
    assert_eq!((put, create), (Taken { calls: 1, values: 0, keys: 0 }, put));
    assert_eq!((stale, update), (get, Taken { calls: 2, values: 1, keys: 0 }));
    assert_eq!(delete, update);
}

/// What each thing costs that is done to one entry.
async fn costs(given: &Given, drafts: &MapStore<Value>) -> Vec<Taken> {
    let taken = || given.engine.taken();
    let mut costs = Vec::new();
    taken();
    let old = found(drafts.get("002500").await);
    costs.push(taken());
    let new = applied(drafts.put("002500", &draft("y")).await);
    costs.push(taken());
    let stale = expecting(Expect::Revision(old.revision));
    assert!(matches!(drafts.put_with("002500", &draft("z"), stale).await, Ok(PutOutcome::Present(_))));
    costs.push(taken());
    let _ = applied(drafts.put_with("002500", &draft("z"), expecting(Expect::Revision(new.revision))).await);
    costs.push(taken());
    assert_eq!(drafts.delete("002500").await.unwrap(), DeleteOutcome::Deleted);
    costs.push(taken());
    let _ = applied(drafts.put_with("002500", &draft("x"), expecting(Expect::Absent)).await);
    costs.push(taken());
    costs
}

pub(super) async fn counts_are_exact_through_expiry(given: Given) {
    let drafts: MapStore<Value> = given.drafts();
    // To the millisecond, or where that cannot be tested in the middle of a second.
    let (many, tick, offset) = if given.is_exact { (30, 1, 0) } else { (3, 1000, 500) };
    for number in 0..many {
        let key = format!("{number:02}");
        let _ = applied(drafts.put_with(&key, &draft(&key), living((number + 1) * tick)).await);
    }
    given.advance(offset);
    for gone in 0..=many {
        let page = drafts.list(ListOptions::first(10)).await.unwrap();
        assert_eq!(page.count, many - gone, "not one early, not one late");
        let offset = page.count / 2;
        let middle = drafts.list(ListOptions::first(100).from(offset)).await.unwrap();
        assert_eq!(middle.count - offset, middle.entries.len() as u64);
        given.advance(tick);
    }
}
