use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::time::Duration;

use pleach_contract::{Contract, KvResource};
use pleach_engine::{BucketConfig, BucketInfo, BucketName, Capabilities, EngineError};

use crate::binding::{Binding, Unstamped};
use crate::contracts::Contracts;
use crate::error::AuthorityError;
use crate::naming::{bucket_name, is_reserved};
use crate::plan::Step;
use crate::record::{Authority, Owner, OwnerState};

/// The metadata of a bucket that names the lineage it belongs to.
pub const OWNER_METADATA: &str = "pleach.contract";

/// Where the data of an alias is, or shall be.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) alias: String,
    pub(crate) bucket: BucketName,
    pub(crate) owner: Option<Owner>,
    pub(crate) info: Option<BucketInfo>,
    pub(crate) kind: PlaceKind,
}

/// How an alias comes to its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaceKind {
    /// It has it, or gets a new one.
    Own,
    /// It takes one that nobody owns.
    Adopted,
    /// It takes back the one that was set aside when it was removed.
    TakenBack,
    /// It is gone, and its bucket is to be set aside.
    Left,
}

impl Place {
    /// What has to be done for it.
    pub(crate) fn step(&self, resource: Option<&KvResource>, lineage: &str, can: &Capabilities) -> Step {
        let (alias, bucket) = (self.alias.clone(), self.bucket.to_string());
        let Some(resource) = resource else { return Step::SetAside { alias, bucket } };
        let config = desired_config(resource, self.info.as_ref(), lineage, can);
        let Some(info) = &self.info else { return Step::Create { alias, bucket, config } };
        match self.kind {
            PlaceKind::Adopted => Step::Adopt { alias, bucket, config, unstamped: Unstamped::by(resource) },
            PlaceKind::TakenBack => Step::TakeBack { alias, bucket, config },
            PlaceKind::Own | PlaceKind::Left => {
                let changes: Vec<String> =
                    info.config.differences(&config).into_iter().map(str::to_owned).collect();
                if changes.is_empty() {
                    return Step::Keep { alias, bucket };
                }
                Step::Configure { alias, bucket, config, changes }
            }
        }
    }

    /// The versions of values that carry none.
    pub(crate) fn unstamped(&self, resource: Option<&KvResource>) -> Option<Unstamped> {
        match self.kind {
            PlaceKind::Adopted => resource.map(Unstamped::by),
            _ => self.owner.as_ref().and_then(|owner| owner.unstamped.clone()),
        }
    }
}

impl Contracts {
    /// Where the data of every alias is or shall be, that of those that are gone included.
    pub(crate) async fn places(
        &self,
        contract: &Contract,
        authority: Option<&Authority>,
        service: &str,
        adopt: &BTreeMap<String, BucketName>,
    ) -> Result<Vec<Place>, AuthorityError> {
        let none = BTreeMap::new();
        let bindings = authority.map_or(&none, |authority| &authority.bindings);
        let mut places = Vec::new();
        for alias in contract.resources.kv.keys() {
            let place = match (bindings.get(alias), adopt.get(alias)) {
                (Some(binding), _) => self.bound(alias, binding).await?,
                (None, Some(bucket)) => self.adopted(contract, alias, bucket).await?,
                (None, None) => self.provided(contract, alias, service).await?,
            };
            places.push(place);
        }
        // A record of what is left that cannot be read is not among those below.
        for (_, binding) in bindings.iter().filter(|(alias, _)| !contract.resources.kv.contains_key(*alias)) {
            self.shared.system.owner(&binding.bucket).await?;
        }
        let now = self.shared.clock.now();
        for (bucket, kept) in self.shared.system.owners(contract.id.as_str()).await? {
            let alias = &kept.value.alias;
            if kept.value.is_stale(now) {
                continue;
            }
            // One that an unfinished plan has only claimed is left just as well.
            if kept.value.state == OwnerState::Owned && !contract.resources.kv.contains_key(alias) {
                let binding = Binding { bucket, unstamped: None };
                places.push(Place { kind: PlaceKind::Left, ..self.bound(alias, &binding).await? });
            }
        }
        Ok(places)
    }

    async fn bound(&self, alias: &str, binding: &Binding) -> Result<Place, AuthorityError> {
        let name = |source| AuthorityError::Name {
            service: binding.bucket.clone(),
            alias: alias.to_owned(),
            source,
        };
        let bucket = BucketName::parse(&binding.bucket).map_err(name)?;
        self.place(alias, bucket, PlaceKind::Own).await
    }

    async fn place(&self, alias: &str, bucket: BucketName, kind: PlaceKind) -> Result<Place, AuthorityError> {
        let system = &self.shared.system;
        let now = self.shared.clock.now();
        let owner = system.owner(bucket.as_str()).await?.map(|kept| kept.value);
        let owner = owner.filter(|owner| !owner.is_stale(now));
        let info = match system.engine().bucket(&bucket).await {
            Ok(info) => Some(info),
            Err(EngineError::BucketNotFound { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Place { alias: alias.to_owned(), bucket, owner, info, kind })
    }

    async fn adopted(
        &self,
        contract: &Contract,
        alias: &str,
        bucket: &BucketName,
    ) -> Result<Place, AuthorityError> {
        let place = self.place(alias, bucket.clone(), PlaceKind::Adopted).await?;
        let refused =
            |why| AuthorityError::NotAdopted { alias: alias.to_owned(), bucket: bucket.clone(), why };
        if is_reserved(bucket) {
            return Err(refused("it is the store's own"));
        }
        if place.info.is_none() {
            return Err(refused("there is no such bucket"));
        }
        self.free(contract, &place)?;
        Ok(place)
    }

    /// The bucket that was set aside when the alias was removed, whatever its name is: an adopted one keeps its own.
    async fn returning(&self, contract: &Contract, alias: &str) -> Result<Option<Place>, AuthorityError> {
        for (bucket, kept) in self.shared.system.owners(contract.id.as_str()).await? {
            let is_aside = matches!(kept.value.state, OwnerState::SetAside { .. } | OwnerState::Restored);
            if is_aside && kept.value.digest.is_some() && self.is_ours(contract, alias, &kept.value) {
                let place = self.place(alias, BucketName::parse(bucket)?, PlaceKind::TakenBack).await?;
                return Ok(place.info.is_some().then_some(place));
            }
        }
        Ok(None)
    }

    /// The bucket that is named after service and alias.
    async fn provided(
        &self,
        contract: &Contract,
        alias: &str,
        service: &str,
    ) -> Result<Place, AuthorityError> {
        let name =
            |source| AuthorityError::Name { service: service.to_owned(), alias: alias.to_owned(), source };
        if let Some(place) = self.returning(contract, alias).await? {
            return Ok(place);
        }
        let bucket = bucket_name(service, alias).map_err(name)?;
        let mut place = self.place(alias, bucket.clone(), PlaceKind::Own).await?;
        self.free(contract, &place)?;
        let is_new = place.owner.as_ref().is_none_or(|owner| !self.is_ours(contract, alias, owner));
        if is_new && place.info.is_some() {
            return Err(AuthorityError::InTheWay { bucket });
        }
        let was_used = place.owner.as_ref().is_some_and(|owner| owner.digest.is_some());
        if was_used && !is_new {
            place.kind = PlaceKind::TakenBack;
        }
        Ok(place)
    }

    /// Refuses a bucket that is someone else's, being deleted, or being copied from another store.
    fn free(&self, contract: &Contract, place: &Place) -> Result<(), AuthorityError> {
        let Some(owner) = &place.owner else { return Ok(()) };
        if !self.is_ours(contract, &place.alias, owner)
            || matches!(owner.state, OwnerState::Going | OwnerState::Arriving)
        {
            return Err(AuthorityError::Taken {
                bucket: place.bucket.clone(),
                alias: place.alias.clone(),
                owner: format!("{} as `{}`", owner.lineage, owner.alias),
            });
        }
        Ok(())
    }

    fn is_ours(&self, contract: &Contract, alias: &str, owner: &Owner) -> bool {
        owner.lineage == contract.id.as_str() && owner.alias == alias
    }
}

/// What the configuration of a bucket becomes: what the contract says, and the rest as it is.
pub(crate) fn desired_config(
    resource: &KvResource,
    info: Option<&BucketInfo>,
    lineage: &str,
    can: &Capabilities,
) -> BucketConfig {
    let mut config = info.map_or_else(|| BucketConfig::plain(can), |info| info.config.clone());
    let history = u8::try_from(resource.history).ok().and_then(NonZeroU8::new);
    config.history = history.unwrap_or(NonZeroU8::MIN);
    config.ttl = (resource.ttl_ms > 0).then(|| Duration::from_millis(resource.ttl_ms));
    let bytes_max = resource.max_value_bytes.and_then(|bytes| u32::try_from(bytes).ok());
    config.value_bytes_max = bytes_max.unwrap_or(can.value_bytes_max);
    config.metadata.insert(OWNER_METADATA.to_owned(), lineage.to_owned());
    config
}
