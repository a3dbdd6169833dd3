use std::io::{BufRead as _, BufReader};

use crate::given::given;

#[test]
fn a_store_in_use_is_refused_with_the_name_of_its_holder() {
    let given = given("put k 1");
    let mut holder = given.start(&["--json", "kv", "watch", "b", "--from", "latest"]);
    let mut output = BufReader::new(holder.stdout.take().unwrap());
    output.read_line(&mut String::new()).unwrap();

    let run = given.run(&["kv", "get", "b", "k"]);
    run.fails(7, "is in use by");
    assert!(run.stderr.contains(&holder.id().to_string()), "{}", run.stderr);
    assert!(run.stderr.contains("help: wait for that process or end it"), "{}", run.stderr);

    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "1\n");
}

#[test]
fn a_value_that_is_slow_to_come_does_not_hold_the_store() {
    let given = given("put k 1");
    let mut slow = given.start(&["kv", "put", "b", "slow"]);
    assert_eq!(given.ok(&["kv", "get", "b", "k"]), "1\n");
    drop(slow.stdin.take());
    assert!(slow.wait().unwrap().success());
}

#[test]
fn what_one_process_writes_the_next_one_reads() {
    let given = given("");
    for number in 0..20 {
        given.ok(&["kv", "put", "b", &format!("k.{number}"), "v"]);
    }
    assert_eq!(given.ok(&["kv", "ls", "b"]).lines().count(), 20);
}
