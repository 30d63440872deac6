//! Adapters: a store client as the trait that a format's library wants.

/// For `object_store` 0.13, the version of deltalake.
#[cfg(feature = "delta")]
pub mod object_store_013 {
    use ::object_store_013 as object_store;

    macro_rules! answer {
        ($name:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => { $name { $($field $(: $value)?),* } };
    }

    include!("object_store.rs");
}

/// For `object_store` 0.14, the version of lance.
#[cfg(feature = "lance")]
pub mod object_store_014 {
    use ::object_store_014 as object_store;

    macro_rules! answer {
        ($name:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {
            $name { $($field $(: $value)?,)* extensions: Default::default() }
        };
    }

    include!("object_store.rs");
}

#[cfg(feature = "iceberg")]
pub mod iceberg;
