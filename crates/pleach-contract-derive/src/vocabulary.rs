//! What each attribute takes, and what the document calls it.

/// A field that an attribute takes.
#[derive(Debug)]
pub(crate) struct Known {
    /// Its name in the attribute.
    pub(crate) name: &'static str,
    /// Its name in the document.
    pub(crate) field: &'static str,
    pub(crate) form: Form,
    pub(crate) is_required: bool,
}

/// What is written after the name of a field.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// `= "text"`
    Text,
    /// `= "word"`, one of these.
    Choice(&'static [&'static str]),
    /// `= 5`
    Number,
    /// Nothing, `= true` or `= false`.
    Flag,
    /// A text, a whole number, `true` or `false`.
    Scalar,
    /// `= ["a", "b"]`
    Texts,
    /// `= Type`: the schema of the type.
    Schema,
    /// `(v1 = Type, v2 = Type)`: schemas by version.
    Schemas,
    /// `(name = "text", …)`
    TextsByName,
    /// `(name = ["a", "b"], …)`: groups and their members.
    Groups,
    /// `(field = …, …)`
    Fields(&'static [Known]),
    /// `(name(field = …, …), …)`
    FieldsByName(&'static [Known]),
}

/// An attribute: its name, and lists of what it takes.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub(crate) name: &'static str,
    pub(crate) known: &'static [&'static [Known]],
}

pub(crate) const CONTRACT: Vocabulary = Vocabulary {
    name: "contract",
    known: &[&[
        required("id", "id", Form::Text),
        required("kind", "kind", Form::Choice(&["service", "app", "device", "agent"])),
        required("name", "displayName", Form::Text),
        optional("description", "description", Form::Text),
        optional("docs", "docs", Form::Text),
        optional("state", "state", Form::Text),
        optional("stores", "stores", Form::Text),
        CRATE,
    ]],
};

pub(crate) const STATE: Vocabulary = Vocabulary {
    name: "state",
    known: &[
        &[
            required("kind", "kind", Form::Choice(&["value", "map"])),
            optional("version", "stateVersion", Form::Text),
            ACCEPTS,
        ],
        NAME,
    ],
};

pub(crate) const KV: Vocabulary = Vocabulary { name: "kv", known: &[BUCKET, NAME] };

/// On a field of a contract: a struct with a resource of its own.
pub(crate) const RESOURCE_FIELD: Vocabulary = Vocabulary { name: "resource", known: &[NAME] };

/// On the struct of a resource.
pub(crate) const RESOURCE: Vocabulary = Vocabulary {
    name: "resource",
    known: &[
        BUCKET,
        &[required("schema", "schema", Form::Schema), optional("atomic", "atomic", Form::Groups), CRATE],
    ],
};

pub(crate) const KEYSPACE: Vocabulary = Vocabulary {
    name: "keyspace",
    known: &[
        &[
            required("key", "key", Form::Text),
            optional("version", "version", Form::Text),
            ACCEPTS,
            optional("role", "role", Form::Choice(&["source", "derived"])),
            optional("from", "from", Form::Texts),
            TIER,
            TTL,
            optional("retention", "retention", Form::Fields(RETENTION)),
            optional("access", "access", Form::FieldsByName(ACCESS)),
        ],
        NAME,
    ],
};

pub(crate) const INDEX: Vocabulary = Vocabulary {
    name: "index",
    known: &[
        &[
            required("of", "of", Form::Text),
            required("key", "key", Form::Text),
            optional("values", "values", Form::TextsByName),
            optional("unique", "unique", Form::Flag),
            optional("max_lag_ms", "maxLagMs", Form::Number),
        ],
        NAME,
    ],
};

pub(crate) const RELATIONSHIP: Vocabulary = Vocabulary {
    name: "relationship",
    known: &[
        &[
            required("from", "from", Form::Text),
            required("to", "to", Form::Text),
            required("forward", "forward", Form::Text),
            required("reverse", "reverse", Form::Text),
            optional("on_delete", "onDelete", Form::Choice(&["restrict", "unlink"])),
        ],
        NAME,
    ],
};

pub(crate) const COUNTER: Vocabulary = Vocabulary {
    name: "counter",
    known: &[
        &[
            required("of", "of", Form::Text),
            required("key", "key", Form::Text),
            optional("when", "when", Form::Fields(CONDITION)),
            optional("shards", "shards", Form::Number),
        ],
        NAME,
    ],
};

/// What every bucket takes, with keyspaces or without.
const BUCKET: &[Known] = &[
    required("purpose", "purpose", Form::Text),
    optional("version", "version", Form::Text),
    ACCEPTS,
    optional("required", "required", Form::Flag),
    optional("history", "history", Form::Number),
    TIER,
    TTL,
    optional("max_value_bytes", "maxValueBytes", Form::Number),
];

/// Another name than that of the field: names of a document take `-`, those of Rust do not.
const NAME: &[Known] = &[optional("name", "name", Form::Text)];

/// Not of the document: where the code is that a derive calls.
const CRATE: Known = optional("crate", "crate", Form::Text);

const ACCEPTS: Known = optional("accepts", "acceptedVersions", Form::Schemas);

const TIER: Known = optional("tier", "tier", Form::Choice(&["ephemeral", "presence", "permanent"]));

const TTL: Known = optional("ttl_ms", "ttlMs", Form::Number);

const RETENTION: &[Known] = &[
    required("segment", "segment", Form::Text),
    required("bucket", "bucket", Form::Choice(&["hour", "day", "week", "month", "year"])),
    required("keep", "keep", Form::Number),
];

const ACCESS: &[Known] = &[
    optional("given", "given", Form::Texts),
    optional("range", "range", Form::Text),
    optional("limit", "limit", Form::Number),
];

const CONDITION: &[Known] =
    &[required("pointer", "pointer", Form::Text), required("equals", "equals", Form::Scalar)];

const fn required(name: &'static str, field: &'static str, form: Form) -> Known {
    Known { name, field, form, is_required: true }
}

const fn optional(name: &'static str, field: &'static str, form: Form) -> Known {
    Known { name, field, form, is_required: false }
}
