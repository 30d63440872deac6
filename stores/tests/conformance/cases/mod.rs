//! What a store must do, case by case.

mod conditions;
mod consistency;
mod listings;
mod objects;

use futures::FutureExt;
use futures::future::LocalBoxFuture;

use crate::bench::Bench;
use crate::subject::Ability;

/// One thing that a store must do.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// What an interface must have words for.
    pub(crate) needs: &'static [Ability],
    /// Panics where the store does not do it.
    pub(crate) run: fn(Bench) -> LocalBoxFuture<'static, ()>,
}

macro_rules! cases {
    ($($module:ident::$case:ident [$($need:ident)*])*) => {
        pub(crate) const CASES: &[Case] = &[$(Case {
            name: stringify!($case),
            needs: &[$(Ability::$need),*],
            run: |bench| $module::$case(bench).boxed_local(),
        }),*];
    };
}

cases! {
    objects::what_was_put_is_got []
    objects::a_write_replaces_the_object []
    objects::nothing_is_not_found []
    objects::a_head_tells_size_tag_and_time []
    objects::a_range_is_cut_to_the_object []
    objects::an_open_span_is_cut_to_the_object [OpenSpan]
    objects::a_range_of_a_large_object []
    objects::a_delete_can_be_repeated []
    objects::parts_are_one_object [Parts]
    objects::keys_are_taken_as_they_are []
    objects::a_copy_is_an_object_of_its_own [Copy]
    objects::a_copy_of_nothing_is_not_found [Copy]
    objects::a_folder_is_deleted_and_nothing_beside_it [DeleteFolder]

    conditions::a_tag_changes_with_each_write [Condition]
    conditions::put_if_absent_writes_once [Condition]
    conditions::put_if_absent_writes_again_after_a_delete [Condition]
    conditions::put_if_match_needs_the_current_tag [Condition]
    conditions::put_if_match_of_nothing_writes_nothing [Condition]
    conditions::copy_if_absent_copies_once [Condition Copy]
    conditions::of_sixteen_creators_one_wins [Condition]
    conditions::of_sixteen_updaters_one_wins [Condition]

    consistency::a_write_is_seen_by_all_at_once []
    consistency::a_reader_sees_one_write_whole []
    consistency::a_listing_shows_every_write_and_delete [List]

    listings::nothing_lists_as_nothing [List]
    listings::every_key_is_listed_once_over_pages [List]
    listings::a_folder_is_no_prefix_of_a_name [List]
    listings::an_offset_is_exclusive [List]
    listings::only_an_ordered_provider_lists_from_an_offset [List]
    listings::folders_are_folded_over_pages [List]
    listings::many_keys_are_folded_into_one_folder [List]
    listings::pages_are_full_but_the_last [List Wire]
    listings::a_folded_listing_starts_within_a_folder [List Wire]
    listings::an_empty_segment_is_a_folder [List Wire]
    listings::a_prefix_may_end_within_a_name [List Wire]
}
