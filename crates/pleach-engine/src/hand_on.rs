/// Writes the methods of an engine that another engine does for it, in its `impl Engine`.
///
/// An engine in front of another changes a few calls and hands the rest on. In brackets is where the other one is
/// (`[inner]` for `self.inner`), then the names of the calls. Its own future is handed on, so that nothing stands
/// between. With `through METHOD`, it goes through `self.METHOD(future)` first, an async method that is generic
/// over what the calls return. With `after METHOD`, calls on a bucket ask `self.METHOD(bucket)` first: `None` hands the call
/// on as it is, and a future is awaited before it and may refuse it.
///
/// ```
/// use pleach_engine::*;
///
/// /// An engine that nobody can write to.
/// #[derive(Debug)]
/// struct ReadOnly(MemoryEngine);
///
/// #[async_trait::async_trait]
/// impl Engine for ReadOnly {
///     async fn commit(&self, _: &BucketName, _: Batch) -> Result<Committed, CommitError> {
///         Err(EngineError::Unsupported { what: "writing" }.into())
///     }
///
///     hand_on!([0] capabilities create_bucket update_bucket delete_bucket bucket buckets read history scan count);
///     hand_on!([0] watch compact_key create_consumer consumers consumer acknowledge reset_consumer);
///     hand_on!([0] delete_consumer close);
/// }
/// ```
#[macro_export]
macro_rules! hand_on {
    ($inner:tt through $pass:ident: $($method:ident)+) => {
        $($crate::hand_on!(@$method $inner $pass);)+
    };
    ($inner:tt after $check:ident: $($method:ident)+) => {
        $($crate::hand_on!(@$method $inner {$check});)+
    };
    ($inner:tt $($method:ident)+) => {
        $($crate::hand_on!(@$method $inner);)+
    };

    (@capabilities [$($inner:tt)+]) => {
        fn capabilities(&self) -> &$crate::Capabilities {
            self.$($inner)+.capabilities()
        }
    };
    (@create_bucket $($way:tt)+) => { $crate::hand_on!(@write $($way)+; create_bucket<'bucket>(
        bucket: &'bucket $crate::BucketName, config: $crate::BucketConfig,
    ) -> $crate::BucketInfo, $crate::EngineError); };
    (@update_bucket $($way:tt)+) => { $crate::hand_on!(@write $($way)+; update_bucket<'bucket>(
        bucket: &'bucket $crate::BucketName, config: $crate::BucketConfig,
    ) -> $crate::BucketInfo, $crate::EngineError); };
    (@delete_bucket $($way:tt)+) => { $crate::hand_on!(@write $($way)+; delete_bucket<'bucket>(
        bucket: &'bucket $crate::BucketName,
    ) -> (), $crate::EngineError); };
    (@bucket $($way:tt)+) => { $crate::hand_on!(@write $($way)+; bucket<'bucket>(
        bucket: &'bucket $crate::BucketName,
    ) -> $crate::BucketInfo, $crate::EngineError); };
    (@buckets $($way:tt)+) => { $crate::hand_on!(@write $($way)+; buckets<>(
    ) -> ::std::vec::Vec<$crate::BucketInfo>, $crate::EngineError); };
    (@commit $($way:tt)+) => { $crate::hand_on!(@write $($way)+; commit<'bucket>(
        bucket: &'bucket $crate::BucketName, batch: $crate::Batch,
    ) -> $crate::Committed, $crate::CommitError); };
    (@read $($way:tt)+) => { $crate::hand_on!(@write $($way)+; read<'bucket, 'key>(
        bucket: &'bucket $crate::BucketName, key: &'key $crate::Key, at: $crate::At,
    ) -> ::std::option::Option<$crate::Entry>, $crate::EngineError); };
    (@history $($way:tt)+) => { $crate::hand_on!(@write $($way)+; history<'bucket, 'key>(
        bucket: &'bucket $crate::BucketName, key: &'key $crate::Key,
    ) -> ::std::vec::Vec<$crate::Entry>, $crate::EngineError); };
    (@scan $($way:tt)+) => { $crate::hand_on!(@write $($way)+; scan<'bucket>(
        bucket: &'bucket $crate::BucketName, query: $crate::ScanQuery,
    ) -> $crate::Page, $crate::EngineError); };
    (@count $($way:tt)+) => { $crate::hand_on!(@write $($way)+; count<'bucket>(
        bucket: &'bucket $crate::BucketName, selection: $crate::Selection,
    ) -> u64, $crate::EngineError); };
    (@watch $($way:tt)+) => { $crate::hand_on!(@write $($way)+; watch<'bucket>(
        bucket: &'bucket $crate::BucketName, query: $crate::WatchQuery,
    ) -> $crate::WatchStream, $crate::EngineError); };
    (@compact_key $($way:tt)+) => { $crate::hand_on!(@write $($way)+; compact_key<'bucket, 'key>(
        bucket: &'bucket $crate::BucketName, key: &'key $crate::Key, keep: ::std::num::NonZeroU8,
    ) -> (), $crate::EngineError); };
    (@create_consumer $($way:tt)+) => { $crate::hand_on!(@write $($way)+; create_consumer<'bucket, 'consumer>(
        bucket: &'bucket $crate::BucketName, consumer: &'consumer $crate::ConsumerName,
        start: $crate::ConsumerStart,
    ) -> $crate::ConsumerInfo, $crate::EngineError); };
    (@consumers $($way:tt)+) => { $crate::hand_on!(@write $($way)+; consumers<'bucket>(
        bucket: &'bucket $crate::BucketName,
    ) -> ::std::vec::Vec<$crate::ConsumerInfo>, $crate::EngineError); };
    (@consumer $($way:tt)+) => { $crate::hand_on!(@write $($way)+; consumer<'bucket, 'consumer>(
        bucket: &'bucket $crate::BucketName, consumer: &'consumer $crate::ConsumerName,
    ) -> $crate::ConsumerInfo, $crate::EngineError); };
    (@acknowledge $($way:tt)+) => { $crate::hand_on!(@write $($way)+; acknowledge<'bucket, 'consumer>(
        bucket: &'bucket $crate::BucketName, consumer: &'consumer $crate::ConsumerName,
        revision: $crate::Revision,
    ) -> (), $crate::EngineError); };
    (@reset_consumer $($way:tt)+) => { $crate::hand_on!(@write $($way)+; reset_consumer<'bucket, 'consumer>(
        bucket: &'bucket $crate::BucketName, consumer: &'consumer $crate::ConsumerName,
        start: $crate::ConsumerStart,
    ) -> $crate::ConsumerInfo, $crate::EngineError); };
    (@delete_consumer $($way:tt)+) => { $crate::hand_on!(@write $($way)+; delete_consumer<'bucket, 'consumer>(
        bucket: &'bucket $crate::BucketName, consumer: &'consumer $crate::ConsumerName,
    ) -> (), $crate::EngineError); };
    (@close $($way:tt)+) => { $crate::hand_on!(@write $($way)+; close<>() -> (), $crate::EngineError); };

    // The form that an async method of the trait has once it is no longer async.
    (@write [$($inner:tt)+] $($pass:ident)?; $method:ident<$($lent:lifetime),*>(
        $($name:ident: $Type:ty),* $(,)?
    ) -> $Value:ty, $Error:ty) => {
        fn $method<'engine, $($lent,)* 'call>(
            &'engine self,
            $($name: $Type),*
        ) -> ::std::pin::Pin<::std::boxed::Box<
            dyn ::std::future::Future<Output = ::std::result::Result<$Value, $Error>> + ::std::marker::Send + 'call,
        >>
        where
            'engine: 'call,
            $($lent: 'call,)*
            Self: 'call,
        {
            $crate::hand_on!(@through self $($pass)?, self.$($inner)+.$method($($name),*))
        }
    };
    // The same, after something that may refuse the call for its bucket.
    (@write [$($inner:tt)+] {$check:ident}; $method:ident<$($lent:lifetime),*>(
        $bucket:ident: $Bucket:ty $(, $name:ident: $Type:ty)* $(,)?
    ) -> $Value:ty, $Error:ty) => {
        fn $method<'engine, $($lent,)* 'call>(
            &'engine self,
            $bucket: $Bucket,
            $($name: $Type),*
        ) -> ::std::pin::Pin<::std::boxed::Box<
            dyn ::std::future::Future<Output = ::std::result::Result<$Value, $Error>> + ::std::marker::Send + 'call,
        >>
        where
            'engine: 'call,
            $($lent: 'call,)*
            Self: 'call,
        {
            match self.$check($bucket) {
                ::std::option::Option::None => self.$($inner)+.$method($bucket $(, $name)*),
                ::std::option::Option::Some(permission) => ::std::boxed::Box::pin(async move {
                    permission.await?;
                    self.$($inner)+.$method($bucket $(, $name)*).await
                }),
            }
        }
    };
    (@through $engine:ident, $call:expr) => { $call };
    (@through $engine:ident $pass:ident, $call:expr) => { ::std::boxed::Box::pin($engine.$pass($call)) };
}
