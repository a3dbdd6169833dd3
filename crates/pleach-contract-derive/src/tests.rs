use proc_macro2::TokenStream;
use syn::{DeriveInput, Result};

use crate::expand;

/// What is wrong with a struct that is meant as a contract.
fn contract(text: &str) -> Vec<String> {
    told(expand::contract, text)
}

/// What is wrong with a struct that is meant as a resource.
fn resource(text: &str) -> Vec<String> {
    told(expand::resource, text)
}

fn told(expand: fn(&DeriveInput) -> Result<TokenStream>, text: &str) -> Vec<String> {
    let input: DeriveInput = syn::parse_str(text).unwrap();
    match expand(&input) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.into_iter().map(|error| error.to_string()).collect(),
    }
}

/// A contract with these fields.
fn with(fields: &str) -> String {
    format!(
        "#[contract(id = \"a@v1\", kind = \"app\", name = \"A\", description = \"A\")] struct A {{ {fields} }}"
    )
}

/// A resource with these fields.
fn holding(fields: &str) -> String {
    format!("#[resource(purpose = \"p\", schema = T)] struct R {{ {fields} }}")
}

#[test]
fn what_is_right_has_no_errors() {
    let fields = "#[state(kind = \"map\", accepts(v0 = Old))] a: T, #[kv(purpose = \"p\", required = false)] b: T, \
                  #[resource] c: R, #[resource(name = \"d-e\")] d: R";
    assert_eq!(contract(&with(fields)), [""; 0]);
    assert_eq!(contract(&with("")), [""; 0]);
    let members = "#[keyspace(key = \"a.{at:time}\", access(x(given = [\"a\"])), retention(segment = \"at\", bucket = \"day\", keep = 3))] a: T, \
                   #[index(of = \"a\", key = \"i.{x}\", values(x = \"/x\"), unique)] i: (), \
                   #[counter(of = \"a\", key = \"n\", when(pointer = \"/x\", equals = 5))] n: ()";
    assert_eq!(resource(&holding(members)), [""; 0]);
}

#[test]
fn a_field_that_is_not_known_is_told_with_the_nearest() {
    assert_eq!(
        contract(&with("#[kv(purpose = \"p\", histroy = 5)] a: T")),
        [
            "#[kv] has no field \"histroy\": did you mean \"history\"? it takes purpose, version, accepts, required, history, \
          tier, ttl_ms, max_value_bytes, name"
        ]
    );
    assert_eq!(
        contract(&with("#[resource(purpose = \"p\")] a: T")),
        ["#[resource] has no field \"purpose\": it takes name"]
    );
    assert_eq!(
        resource(&holding("#[keyspace(key = \"a\", access(x(giben = [\"a\"])))] a: T")),
        [
            "\"x\" of \"access\" of #[keyspace] has no field \"giben\": did you mean \"given\"? it takes given, range, limit"
        ]
    );
}

#[test]
fn a_field_that_must_be_there_is_asked_for() {
    assert_eq!(contract(&with("#[kv] a: T")), ["#[kv] needs \"purpose\": add `purpose = \"…\"`"]);
    assert_eq!(contract(&with("#[state()] a: T")), ["#[state] needs \"kind\": add `kind = \"…\"`"]);
    assert_eq!(
        resource(&holding("#[keyspace(key = \"a\", retention(segment = \"a\", bucket = \"day\"))] a: T")),
        ["\"retention\" of #[keyspace] needs \"keep\": add `keep = 5`"]
    );
    assert_eq!(resource("struct R {}"), ["add #[resource(…)] to say what it is"]);
    assert_eq!(
        contract("#[contract(id = \"a@v1\", kind = \"app\", name = \"A\")] struct A {}"),
        ["nothing says what the contract is for: document the struct, or add `description = \"…\"`"]
    );
}

#[test]
fn a_facade_is_made_of_what_can_be_one() {
    let asking = |more: &str, fields: &str| {
        let head = format!("id = \"a@v1\", kind = \"app\", name = \"A\", description = \"A\", {more}");
        contract(&format!("#[contract({head})] struct A {{ {fields} }}"))
    };
    let store = "#[state(kind = \"map\", accepts(\"v.1\" = Old, \"ü\" = Old, \"2\" = Old, Self = Old))] a: T";
    assert_eq!(asking("state = \"AState\", stores = \"a::b\"", store), [""; 0]);
    assert_eq!(
        asking("state = \"A State\"", store),
        ["\"state\" is the name of a type to make, and \"A State\" cannot be one"]
    );
    assert_eq!(
        asking("state = \"AState\", stores = \"a b\"", store),
        ["\"stores\" is a path such as \"pleach::stores\", and \"a b\" is none"]
    );
    assert_eq!(
        asking("crate = \"a b\"", store),
        ["\"crate\" is a path such as \"pleach::contract\", and \"a b\" is none"]
    );
    assert_eq!(
        asking("stores = \"a\"", store),
        ["\"stores\" says where the code of the state is: add `state = \"…\"`, the name of its type"]
    );
    assert_eq!(
        asking("state = \"AState\"", "#[state(kind = \"map\", accepts(v1 = Old, V1 = Older))] a: T"),
        ["two older versions would be the variant V1: rename one"]
    );
}

#[test]
fn a_value_of_another_form_is_told_with_the_right_one() {
    assert_eq!(
        contract(&with("#[kv(purpose = \"p\", tier = \"presense\")] a: T")),
        [
            "\"tier\" cannot be \"presense\": did you mean \"presence\"? it is one of ephemeral, presence, permanent"
        ]
    );
    assert_eq!(
        contract(&with("#[kv(purpose = \"p\", history = \"5\")] a: T")),
        ["\"history\" is written as `history = 5`"]
    );
    assert_eq!(contract(&with("#[kv(purpose)] a: T")), ["\"purpose\" is written as `purpose = \"…\"`"]);
    assert_eq!(
        contract(&with("#[state(kind = \"map\", accepts = \"v1\")] a: T")),
        ["\"accepts\" is written as `accepts(v1 = Type)`"]
    );
    assert_eq!(
        contract(&with("#[kv = 5] a: T")),
        [
            "#[kv] takes its fields in parentheses: purpose, version, accepts, required, history, tier, ttl_ms, \
          max_value_bytes, name"
        ]
    );
    assert_eq!(
        resource(&holding("#[index(of = \"a\", key = \"i\")] i: String")),
        ["a value of #[index] has no type of its own: write `()`"]
    );
}

#[test]
fn what_is_there_twice_is_told() {
    assert_eq!(
        contract(&with("#[kv(purpose = \"p\", history = 1, history = 2)] a: T")),
        ["#[kv] has \"history\" twice: keep one"]
    );
    assert_eq!(
        contract(&with("#[state(kind = \"map\", accepts(v1 = A, v1 = B))] a: T")),
        ["\"accepts\" has \"v1\" twice: keep one"]
    );
    assert_eq!(
        contract(&with("#[resource] #[kv(purpose = \"p\")] a: T")),
        ["a field is one thing: keep one of its attributes"]
    );
    assert_eq!(
        contract(&with("#[kv(purpose = \"p\")] a: T, #[resource(name = \"a\")] b: R")),
        ["another field is \"a\" already: give each its own name"]
    );
    // A store and a bucket are different things.
    assert_eq!(
        contract(&with("#[kv(purpose = \"p\")] a: T, #[state(kind = \"map\", name = \"a\")] b: R")),
        [""; 0]
    );
}

#[test]
fn errors_of_several_fields_come_at_once() {
    assert_eq!(
        contract("#[contract(id = 5)] struct A { a: T, #[kv] b: T }"),
        [
            "\"id\" is written as `id = \"…\"`",
            "nothing says what this field is: add one of #[state], #[kv], #[resource]",
            "#[kv] needs \"purpose\": add `purpose = \"…\"`",
        ]
    );
}

#[test]
fn only_structs_with_names_stand_for_something() {
    assert_eq!(contract("enum A { B }"), ["a contract is a struct with names for its fields"]);
    assert_eq!(resource("struct A(T);"), ["a resource is a struct with names for its fields"]);
    assert_eq!(resource("struct A<T> { a: T }"), ["a resource is one thing: its struct takes no parameters"]);
}
