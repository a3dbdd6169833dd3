//! Servers that let only some in, and only in the right way.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use pleach_engine::{EngineError, ErrorKind};
use pleach_nats::{Authentication, NatsEngine, NatsOptions, Tls};
use pleach_nats_testing::{Server, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::refusals::round_trip;

#[tokio::test]
async fn users_are_let_in_with_their_password_only() {
    let user = |password: &str| Authentication::User { user: "ann".into(), password: password.into() };
    check("authorization { user: ann, password: secret }", user("wrong"), user("secret")).await;
}

#[tokio::test]
async fn whoever_has_the_token_is_let_in() {
    let token = |token: &str| Authentication::Token(token.into());
    check("authorization { token: secret }", token("wrong"), token("secret")).await;
}

#[tokio::test]
async fn whoever_has_the_seed_of_an_nkey_is_let_in() {
    let (known, unknown) = (KeyPair::new_user(), KeyPair::new_user());
    let seed = |pair: &KeyPair| Authentication::Nkey(pair.seed().unwrap());
    let more = format!("authorization {{ users: [{{ nkey: {} }}] }}", known.public_key());
    check(&more, seed(&unknown), seed(&known)).await;
}

#[tokio::test]
async fn credentials_are_taken_from_their_file() {
    let (operator, account, user) = (KeyPair::new_operator(), KeyPair::new_account(), KeyPair::new_user());
    let system = KeyPair::new_account();
    let told_operator = token(&operator, &operator, "operator", json!({}));
    let mut unlimited = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1,
        "leaf": -1
    });
    let told_system = token(&system, &operator, "account", json!({ "limits": unlimited.clone() }));
    for stored in ["mem_storage", "disk_storage", "streams", "consumer"] {
        unlimited[stored] = json!(-1);
    }
    let told_account = token(&account, &operator, "account", json!({ "limits": unlimited }));
    let limits = json!({ "subs": -1, "data": -1, "payload": -1 });
    let more = format!(
        "operator: {told_operator}\nsystem_account: {1}\nresolver: MEMORY\n\
         resolver_preload: {{ {0}: {told_account}, {1}: {told_system} }}",
        account.public_key(),
        system.public_key()
    );
    let directory = TempDir::new().unwrap();
    // One whose account nobody knows, and one of the account.
    let files = [(&user, "stranger.creds"), (&account, "user.creds")].map(|(issuer, name)| {
        let token = token(&user, issuer, "user", limits.clone());
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            user.seed().unwrap()
        );
        file(&directory, name, &text)
    });
    let [stranger, known] = files.map(Authentication::Credentials);
    check(&more, stranger, known).await;
    let missing = Authentication::Credentials(directory.path().join("missing.creds"));
    let options = NatsOptions { authentication: missing, ..NatsOptions::server("nats://127.0.0.1:1") };
    let error = NatsEngine::connect(options).await.unwrap_err();
    assert!(
        matches!(&error, EngineError::Io { path, .. } if path.ends_with("missing.creds")),
        "it names the file: {error:?}"
    );
}

#[tokio::test]
async fn a_server_with_tls_is_trusted_by_its_root_only() {
    let directory = TempDir::new().unwrap();
    let (certificate, key) = certified(&directory, "server");
    let more = format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}");
    let server = Server::start_with(Settings { more: &more, ..Settings::default() });
    let error = connect_tls(&server, Tls { required: true, ..Tls::default() }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    let trusted = Tls { required: true, roots: vec![certificate], ..Tls::default() };
    round_trip(&connect_tls(&server, trusted).await.unwrap()).await;
}

#[tokio::test]
async fn a_server_that_asks_for_certificates_lets_in_who_has_one() {
    let directory = TempDir::new().unwrap();
    let ((certificate, key), ours) = (certified(&directory, "server"), certified(&directory, "client"));
    let more = format!(
        "tls {{ cert_file: {certificate:?}, key_file: {key:?}, ca_file: {:?}, verify: true }}",
        ours.0
    );
    let server = Server::start_with(Settings { more: &more, ..Settings::default() });
    let tls = |certificate: Option<(PathBuf, PathBuf)>, root: &PathBuf| Tls {
        required: true,
        roots: vec![root.clone()],
        certificate,
    };
    let error = connect_tls(&server, tls(None, &certificate)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    round_trip(&connect_tls(&server, tls(Some(ours), &certificate)).await.unwrap()).await;
}

#[tokio::test]
async fn a_server_without_tls_is_refused_where_it_is_required() {
    let server = Server::start();
    let error = connect_tls(&server, Tls { required: true, ..Tls::default() }).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
}

/// Checks that a server with these settings refuses `wrong` without showing it, and lets `right` in.
async fn check(more: &str, wrong: Authentication, right: Authentication) {
    let server = Server::start_with(Settings { more, ..Settings::default() });
    let connect = async |authentication| {
        NatsEngine::connect(NatsOptions { authentication, ..NatsOptions::server(server.url()) }).await
    };
    let error = connect(wrong).await.unwrap_err();
    assert!(matches!(error, EngineError::Denied { .. }), "{error:?}");
    assert!(!format!("{error:?}").contains("wrong"), "a secret is shown");
    round_trip(&connect(right).await.unwrap()).await;
}

async fn connect_tls(server: &Server, tls: Tls) -> Result<NatsEngine, EngineError> {
    let options = NatsOptions::server(server.url().replace("nats:", "tls:"));
    NatsEngine::connect(NatsOptions { tls, ..options }).await
}

/// The files of a certificate for loopback that vouches for itself, and of its key.
fn certified(directory: &TempDir, name: &str) -> (PathBuf, PathBuf) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let signed = rcgen::generate_simple_self_signed(names).unwrap();
    let certificate = file(directory, &format!("{name}.pem"), &signed.cert.pem());
    (certificate, file(directory, &format!("{name}-key.pem"), &signed.signing_key.serialize_pem()))
}

fn file(directory: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// What `issuer` says of `subject`, in the form that servers believe.
fn token(subject: &KeyPair, issuer: &KeyPair, kind: &str, mut claims: Value) -> String {
    claims["type"] = json!(kind);
    claims["version"] = json!(2);
    let body = json!({
        "jti": "unused", "iat": 1_700_000_000, "iss": issuer.public_key(), "name": kind,
        "sub": subject.public_key(), "nats": claims
    });
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encoded(&json!({ "typ": "JWT", "alg": "ed25519-nkey" })), encoded(&body));
    let signature = URL_SAFE_NO_PAD.encode(issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}
