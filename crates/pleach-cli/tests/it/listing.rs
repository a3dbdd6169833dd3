use crate::given::{Given, given};

fn listed(given: &Given, arguments: &[&str]) -> String {
    given.ok(&[&["kv", "ls", "b"], arguments].concat()).trim_end().replace('\n', " ")
}

#[test]
fn keys_are_listed_in_order_by_filter_prefix_and_range() {
    let given = given("put user.2 b; put user.1 a; put guest.1 c; put user.1.cart d; put gone x; del gone");
    assert_eq!(listed(&given, &[]), "guest.1 user.1 user.1.cart user.2");
    assert_eq!(listed(&given, &["user.*"]), "user.1 user.2");
    assert_eq!(listed(&given, &["user.>"]), "user.1 user.1.cart user.2");
    assert_eq!(listed(&given, &["--prefix", "us"]), "user.1 user.1.cart user.2");
    assert_eq!(listed(&given, &["--from", "user.1", "--to", "user.2"]), "user.1 user.1.cart");
    assert_eq!(listed(&given, &["--reverse", "--limit", "2"]), "user.2 user.1.cart");
    assert_eq!(listed(&given, &["user.*", "--from", "user.2"]), "user.2");
    assert_eq!(listed(&given, &["--limit", "0"]), "");
    assert_eq!(listed(&given, &["nobody"]), "");
}

#[test]
fn values_are_listed_on_request() {
    let given = given("put a 1");
    given.ok(&["kv", "put", "b", "c", "two\nlines"]);
    given.run_with(&[0xff], &["kv", "put", "b", "d"]).ok();
    assert_eq!(given.ok(&["kv", "ls", "b", "--values"]), "a\t1\nc\ttwo\\nlines\nd\t(1 byte, not text)\n");
}

#[test]
fn json_has_values_unless_only_keys_are_wanted() {
    let given = given("put a 1");
    assert_eq!(given.json(&["kv", "ls", "b"])[0]["value"], "1");
    assert!(given.json(&["kv", "ls", "b", "--keys-only"])[0].get("value").is_none());
}

#[test]
fn bad_filters_and_contradictions_are_refused() {
    let given = given("");
    given.run(&["kv", "ls", "b", "a.>.b"]).fails(2, "misplaced wildcard");
    given.run(&["kv", "ls", "b", "--prefix", "a", "--from", "b"]).fails(2, "cannot be used with");
    given.run(&["kv", "ls", "nope"]).fails(3, "there is no bucket nope");
}

#[test]
fn more_keys_than_a_page_holds_are_all_listed() {
    let given = given("");
    let lines: String = (0..12_345)
        .map(|n| format!("{{\"v\":1,\"bucket\":\"b\",\"key\":\"k.{n:05}\",\"value\":\"\"}}\n"))
        .collect();
    given.run_with(lines.as_bytes(), &["kv", "import"]).ok();
    let listed = given.ok(&["kv", "ls", "b"]);
    let expected: String = (0..12_345).map(|n| format!("k.{n:05}\n")).collect();
    assert!(listed == expected, "{} lines", listed.lines().count());
    assert_eq!(given.json(&["kv", "ls", "b", "--reverse"]).len(), 12_345);
}
