//! Contracts that move with their buckets.

use pleach::contract::{Contract, ContractId, Notation};
use pleach::migrate::{
    Advance, ContractMove, MigrateError, MigrateOptions, Migration, Plan, VerifiedContracts, move_projections,
};
#[cfg(feature = "nats")]
use pleach::nats::{NatsOptions, Scans};
use pleach::stores::{
    ApplyOptions, AuthorityError, Extent, OwnerState, PlanOptions, SYSTEM_BUCKET, TransferError,
};
use pleach::{Bucket, BucketName, Change, Derived, EngineError, Error, Reduced, Reducer, Store};

use crate::run;

const NOTES: &str = "acme.notes@v1";
const NOTES_BUCKET: &str = "svc_notes_notes";
const DRAFTS_BUCKET: &str = "svc_notes_drafts";

/// Notes whose texts have up to so many characters, with or without drafts.
fn notes(length: u64, has_drafts: bool) -> Contract {
    let drafts = if has_drafts { "drafts: {purpose: Drafts, schema: {schema: Note}}" } else { "" };
    parse(&format!(
        r#"
format: pleach.contract.v1
id: {NOTES}
kind: app
displayName: Notes
description: Notes of people
schemas:
  Note: {{type: object, properties: {{text: {{type: string, maxLength: {length}}}}}, required: [text]}}
resources:
  kv:
    notes: {{purpose: All notes, schema: {{schema: Note}}, history: 3}}
    {drafts}
"#
    ))
}

/// Orders in a bucket that was there before.
fn shop() -> Contract {
    parse(
        r#"
format: pleach.contract.v1
id: acme.shop@v1
kind: app
displayName: Shop
description: Orders
schemas:
  Order: {type: object, properties: {count: {type: integer}}, required: [count]}
resources:
  kv:
    orders: {purpose: Orders, schema: {schema: Order}}
"#,
    )
}

fn parse(text: &str) -> Contract {
    Contract::parse(text.as_bytes(), Notation::Yaml).unwrap().contract
}

fn id(contract: &Contract) -> ContractId {
    contract.id.clone()
}

fn name(text: &str) -> BucketName {
    BucketName::parse(text).unwrap()
}

async fn accept(store: &Store, contract: &Contract, options: PlanOptions) {
    let plan = store.contracts().plan(contract, options).await.unwrap();
    let by = ApplyOptions::by("ann").acknowledging("it is a test");
    store.contracts().apply(&plan, by).await.unwrap();
}

/// A store with two lineages, one of them in its second version with a bucket set aside, the other with a bucket that was
/// adopted; old records, a value that breaks the contract past the guards, and an entry that no contract owns.
async fn fill(store: &Store) {
    accept(store, &notes(100, true), PlanOptions::default()).await;
    let bucket = store.bucket(NOTES_BUCKET).await.unwrap();
    bucket.put("a", r#"{"text": "one"}"#).await.unwrap();
    bucket.put("a", r#"{"text": "a text that is longer"}"#).await.unwrap();
    bucket.put("a", r#"{"text": "two"}"#).await.unwrap();
    bucket.put("gone", r#"{"text": "x"}"#).await.unwrap();
    bucket.delete("gone").await.unwrap();
    store.bucket(DRAFTS_BUCKET).await.unwrap().put("d", r#"{"text": "draft"}"#).await.unwrap();
    accept(store, &notes(10, false), PlanOptions::default()).await;
    let glass = store.break_glass("bob", "a repair").unwrap();
    glass.bucket(NOTES_BUCKET).await.unwrap().put("broken", "no JSON at all").await.unwrap();
    let legacy = store.create_bucket("legacy").await.unwrap();
    legacy.put("o.1", r#"{"count": 3}"#).await.unwrap();
    let adopt = [("orders".to_owned(), name("legacy"))].into();
    accept(store, &shop(), PlanOptions { adopt, ..PlanOptions::default() }).await;
    store.create_bucket("plain").await.unwrap().put("k", "v").await.unwrap();
}

fn options() -> MigrateOptions {
    MigrateOptions { origin: "here".into(), accept_loss: true, ..MigrateOptions::default() }
}

/// Every bucket but the system bucket, under its own name.
async fn all_buckets(store: &Store) -> Vec<(BucketName, BucketName)> {
    let names = store.buckets().await.unwrap().into_iter().map(|info| info.name);
    names.filter(|name| name.as_str() != SYSTEM_BUCKET).map(|name| (name.clone(), name)).collect()
}

async fn copy(source: &Store, target: &Store, pairs: &[(BucketName, BucketName)]) -> Result<(), Error> {
    for (from, to) in pairs {
        let plan = Plan::make(source, target, from, to, &options()).await?;
        let mut migration = Migration::begin(source, target, plan, &options()).await?;
        loop {
            match migration.advance().await? {
                Advance::Waiting { caught_up: true, .. } => break,
                Advance::Waiting { .. } => std::thread::sleep(std::time::Duration::from_millis(1)),
                Advance::Worked => {}
            }
        }
        migration.cut_over().await?;
    }
    Ok(())
}

async fn move_all(source: &Store, target: &Store) -> Result<VerifiedContracts, Error> {
    let pairs = all_buckets(source).await;
    let contracts = ContractMove::plan(source, target, Extent::Store, pairs.clone()).await?;
    contracts.begin().await?;
    copy(source, target, &pairs).await?;
    contracts.finish().await
}

/// What `contract status` and `contract history` say of a lineage, without plans, which belong to their store.
async fn told(store: &Store, contract: &Contract) -> String {
    let contracts = store.contracts();
    let status = contracts.status(&id(contract)).await.unwrap().unwrap();
    let history = contracts.history(&id(contract)).await.unwrap();
    let acts = contracts.broken_glass().await.unwrap();
    format!("{:#?} {:#?} {history:#?} {acts:#?}", status.authority, status.buckets)
}

/// Checks that a program finds in the target what it had in the source.
async fn check_moved(source: &Store, target: &Store) {
    for contract in [notes(10, false), shop()] {
        assert_eq!(told(source, &contract).await, told(target, &contract).await);
        target.service(&contract).await.unwrap();
        let plan = target.contracts().plan(&contract, PlanOptions::default()).await.unwrap();
        assert!(plan.is_nothing(), "{:?} {:?}", plan.findings, plan.steps);
    }
    assert!(target.contracts().damages().await.unwrap().is_empty());
    let bucket = target.bucket(NOTES_BUCKET).await.unwrap();
    let texts: Vec<_> = bucket.history("a").await.unwrap().into_iter().map(|entry| entry.value).collect();
    assert_eq!(texts.len(), 3);
    assert_eq!(texts[1], r#"{"text": "a text that is longer"}"#);
    assert_eq!(bucket.get("broken").await.unwrap().unwrap().value, "no JSON at all");
    bucket.put("b", r#"{"text": "short"}"#).await.unwrap();
    let refused = bucket.put("b", r#"{"text": "longer than allowed"}"#).await.unwrap_err();
    assert!(matches!(refused, Error::Engine(EngineError::BrokenContract { .. })), "{refused:?}");
    assert!(target.bucket(DRAFTS_BUCKET).await.unwrap().put("d", r#"{"text": "x"}"#).await.is_err());
    let orders = target.bucket("legacy").await.unwrap();
    assert!(orders.get("o.1").await.unwrap().unwrap().headers.iter().next().is_none(), "nothing was stamped");
    assert!(orders.put("o.2", "3").await.is_err());
}

fn refusal(error: Error) -> TransferError {
    match error {
        Error::Contract(AuthorityError::Transfer(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn contracts_move_with_their_buckets_and_hold_in_the_target() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let open = |name: &str| Store::open(directory.path().join(name));
        let pairs = [
            (Store::in_memory(), Store::in_memory()),
            (Store::in_memory(), open("a").await.unwrap()),
            (open("b").await.unwrap(), open("c").await.unwrap()),
        ];
        for (source, target) in pairs {
            fill(&source).await;
            let verified = move_all(&source, &target).await.unwrap();
            assert_eq!(
                (verified.lineages, verified.decisions, verified.buckets, verified.overrides),
                (2, 3, 3, 1)
            );
            assert_eq!(verified.source_digest, verified.target_digest);
            check_moved(&source, &target).await;
            // The bucket that was set aside can be restored.
            let restored = target.contracts().restore(&id(&notes(10, false)), "drafts").await.unwrap();
            assert_eq!(restored.as_str(), DRAFTS_BUCKET);
        }
    });
}

#[cfg(feature = "nats")]
#[test]
fn contracts_move_to_servers_and_back() {
    run(async {
        let server = pleach_nats_testing::Server::start();
        let (source, back) = (Store::in_memory(), Store::in_memory());
        let servers = Store::connect(server.url()).await.unwrap();
        fill(&source).await;
        move_all(&source, &servers).await.unwrap();
        move_all(&servers, &back).await.unwrap();
        check_moved(&source, &back).await;
        check_moved(&source, &servers).await;
    });
}

#[cfg(feature = "nats")]
#[test]
fn contracts_move_to_three_servers() {
    run(async {
        let cluster = pleach_nats_testing::Cluster::start();
        let replicas = std::num::NonZeroU8::new(3).unwrap();
        let servers = NatsOptions { replicas, servers: cluster.urls(), ..NatsOptions::default() };
        let target = Store::connect_nats(NatsOptions { scans: Scans::Direct, ..servers }).await.unwrap();
        let source = Store::in_memory();
        fill(&source).await;
        move_all(&source, &target).await.unwrap();
        check_moved(&source, &target).await;
    });
}

#[test]
fn a_bucket_that_is_being_filled_takes_nothing_but_copies() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        fill(&source).await;
        let pairs = all_buckets(&source).await;
        let contracts = ContractMove::plan(&source, &target, Extent::Store, pairs.clone()).await.unwrap();
        contracts.begin().await.unwrap();
        assert!(target.create_bucket(NOTES_BUCKET).await.is_err());
        copy(&source, &target, &pairs).await.unwrap();
        let bucket = target.bucket(NOTES_BUCKET).await.unwrap();
        let refused = bucket.put("b", r#"{"text": "short"}"#).await.unwrap_err();
        assert!(matches!(refused, Error::Engine(EngineError::Arriving { .. })), "{refused:?}");
        assert!(target.service(&notes(10, false)).await.is_err());
        assert!(target.contracts().plan(&notes(10, false), PlanOptions::default()).await.is_err());
        // A store that is being filled is not moved on.
        let third = Store::in_memory();
        let error = ContractMove::plan(&target, &third, Extent::Store, pairs.clone()).await.unwrap_err();
        assert!(matches!(refusal(error), TransferError::Arriving { .. }));
        // Someone who gives up deletes the bucket, and nothing is left of it.
        target.delete_bucket(NOTES_BUCKET).await.unwrap();
        assert_eq!(target.contracts().owner(&name(NOTES_BUCKET)).await.unwrap(), None);
        target.create_bucket(NOTES_BUCKET).await.unwrap();
    });
}

#[test]
fn a_move_that_stops_anywhere_is_completed_by_the_next() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        fill(&source).await;
        let pairs = all_buckets(&source).await;
        for copied in 0..=pairs.len() {
            let contracts = ContractMove::plan(&source, &target, Extent::Store, pairs.clone()).await.unwrap();
            contracts.begin().await.unwrap();
            copy(&source, &target, &pairs[..copied]).await.unwrap();
        }
        let first = move_all(&source, &target).await.unwrap();
        // Once more, it only compares.
        assert_eq!(move_all(&source, &target).await.unwrap(), first);
        check_moved(&source, &target).await;
    });
}

#[test]
fn a_contract_that_is_applied_during_a_move_is_not_missed() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        accept(&source, &notes(100, false), PlanOptions::default()).await;
        let pairs = all_buckets(&source).await;
        let contracts = ContractMove::plan(&source, &target, Extent::Store, pairs.clone()).await.unwrap();
        contracts.begin().await.unwrap();
        copy(&source, &target, &pairs).await.unwrap();
        accept(&source, &notes(200, true), PlanOptions::default()).await;
        assert!(matches!(refusal(contracts.finish().await.unwrap_err()), TransferError::Moved));
        assert!(target.contracts().lineages().await.unwrap().is_empty());
        move_all(&source, &target).await.unwrap();
        assert_eq!(told(&source, &notes(200, true)).await, told(&target, &notes(200, true)).await);
    });
}

#[test]
fn what_cannot_move_is_refused_before_anything_is_written() {
    run(async {
        let source = Store::in_memory();
        fill(&source).await;
        let part: Extent = Extent::Buckets([name(NOTES_BUCKET)].into());
        let plan = async |target: &Store, extent: Extent| {
            let pairs = all_buckets(&source).await;
            refusal(ContractMove::plan(&source, target, extent, pairs).await.unwrap_err())
        };
        let empty = Store::in_memory();
        let error = plan(&empty, part).await;
        assert!(matches!(&error, TransferError::Incomplete { missing, .. } if *missing == [DRAFTS_BUCKET]));
        // Another contract of the lineage, or an older version of it.
        let other = Store::in_memory();
        accept(&other, &notes(100, true), PlanOptions::default()).await;
        assert!(matches!(plan(&other, Extent::Store).await, TransferError::Clash { .. }));
        // A bucket of another lineage.
        let taken = Store::in_memory();
        taken.create_bucket("legacy").await.unwrap();
        let adopt = [("notes".to_owned(), name("legacy"))].into();
        let mine = parse(&notes_text("globex.notes@v1"));
        accept(&taken, &mine, PlanOptions { adopt, service: Some("g".into()), ..PlanOptions::default() })
            .await;
        assert!(matches!(plan(&taken, Extent::Store).await, TransferError::Taken { .. }));
        for store in [&empty, &other, &taken] {
            let owner = store.contracts().owner(&name(DRAFTS_BUCKET)).await.unwrap();
            assert!(owner.is_none_or(|owner| owner.state != OwnerState::Arriving));
        }
        // A bucket of a contract does not move without it.
        let bucket = name(NOTES_BUCKET);
        let planned = Plan::make(&source, &empty, &bucket, &bucket, &options()).await.unwrap();
        let error = Migration::begin(&source, &empty, planned, &options()).await.unwrap_err();
        assert!(matches!(error, Error::Migrate(MigrateError::NotReserved { .. })), "{error:?}");
        assert!(empty.buckets().await.unwrap().is_empty());
    });
}

fn notes_text(id: &str) -> String {
    format!(
        r#"
format: pleach.contract.v1
id: {id}
kind: app
displayName: Notes
description: Notes
schemas:
  Note: {{type: object}}
resources:
  kv:
    notes: {{purpose: All notes, schema: {{schema: Note}}}}
"#
    )
}

#[test]
fn renamed_buckets_keep_their_contract() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        accept(&source, &shop(), PlanOptions::default()).await;
        source.bucket("svc_shop_orders").await.unwrap().put("o.1", r#"{"count": 3}"#).await.unwrap();
        let pairs = vec![(name("svc_shop_orders"), name("orders-2024"))];
        let extent = Extent::Buckets([name("svc_shop_orders")].into());
        let contracts = ContractMove::plan(&source, &target, extent, pairs.clone()).await.unwrap();
        contracts.begin().await.unwrap();
        copy(&source, &target, &pairs).await.unwrap();
        contracts.finish().await.unwrap();
        let bindings = target.contracts().bind(&shop()).await.unwrap();
        assert_eq!(bindings["orders"].bucket, "orders-2024");
        let plan = target.contracts().plan(&shop(), PlanOptions::default()).await.unwrap();
        assert!(plan.is_nothing(), "{:?}", plan.steps);
        assert!(target.bucket("orders-2024").await.unwrap().put("o.2", "no order").await.is_err());
    });
}

#[test]
fn a_projection_that_has_applied_everything_goes_on_in_the_target() {
    run(async {
        let (source, target) = (Store::in_memory(), Store::in_memory());
        let orders = source.create_bucket("orders").await.unwrap();
        let counts = source.create_bucket("counts").await.unwrap();
        orders.put("a", "1").await.unwrap();
        copy_projection(&orders, &counts).await;
        let pairs = all_buckets(&source).await;
        copy(&source, &target, &pairs).await.unwrap();
        let moved = move_projections(&source, &target, &pairs.into_iter().collect()).await.unwrap();
        assert_eq!((moved.len(), moved[0].goes_on), (1, true));
        let (orders, counts) =
            (target.bucket("orders").await.unwrap(), target.bucket("counts").await.unwrap());
        counts.put("a", "changed by hand").await.unwrap();
        orders.put("b", "2").await.unwrap();
        copy_projection(&orders, &counts).await;
        // It went on with the change after the move, and did not begin anew.
        assert_eq!(counts.get("a").await.unwrap().unwrap().value, "changed by hand");
        assert_eq!(counts.get("b").await.unwrap().unwrap().value, "2");
    });
}

/// Copies every entry.
struct Copy;

impl Reducer for Copy {
    async fn reduce(&mut self, change: &Change, derived: &mut Derived) -> Reduced {
        derived.put(change.entry.key.clone(), change.entry.value.clone())?;
        Ok(())
    }
}

/// Runs a projection that copies every entry, until it has applied what there is.
async fn copy_projection(source: &Bucket, target: &Bucket) {
    source.project("copy", target, Copy).await.unwrap().catch_up().await.unwrap();
}
