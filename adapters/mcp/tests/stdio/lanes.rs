//! A process speaks one era. The first caller chooses it, and it stays until the process ends.

use capstan_hub::Call;
use capstan_hub::ports::{Backend as _, Era as LaneEra, Lane, Listing};
use capstan_mcp::{Era, StdioSettings};
use capstan_model::{Caller, Front, Target};

use crate::scene::{Scene, fixture, json};

const LEGACY: Lane = Lane::of(LaneEra::Legacy);
const MODERN: Lane = Lane::of(LaneEra::Modern);

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Calls a tool in this lane; the revision that the server then speaks.
async fn call(scene: &Scene, lane: Lane) -> String {
    let target = Target::tool("s__add");
    let call = Call::new(Caller::operator(Front::Cli), target, Some(&json(r#"{"a":2,"b":3}"#)));
    let answer = scene.send_in(lane, call).await.unwrap().to_string();
    assert!(answer.contains('5'), "{answer}");
    scene.server.about().unwrap().protocol.clone()
}

/// The number of processes that were started: each is asked for its tools once.
fn starts(scene: &Scene) -> usize {
    scene.count("tools/list")
}

#[tokio::test]
async fn the_first_caller_chooses_the_era_of_a_process_and_the_next_keep_it() {
    let [legacy, modern] = REVISIONS;
    for (first, revision) in [(LEGACY, legacy), (MODERN, modern)] {
        let scene = Scene::new(&["--era", "both"]);
        for lane in [first, LEGACY, MODERN, Lane::ANY] {
            assert_eq!(call(&scene, lane).await, revision, "{lane:?}");
        }
        assert_eq!(starts(&scene), 1);
        // The next process is again its first caller's.
        scene.server.disconnect();
        assert_eq!(call(&scene, LEGACY).await, legacy);
    }
}

#[tokio::test]
async fn a_process_that_was_only_listed_is_started_again_for_its_first_caller() {
    let [legacy, modern] = REVISIONS;
    let scene = Scene::new(&["--era", "both"]);
    scene.listing(Listing::Tools).await.unwrap();
    assert_eq!(scene.server.about().unwrap().protocol, modern);
    assert_eq!(call(&scene, LEGACY).await, legacy);
    assert_eq!((call(&scene, MODERN).await.as_str(), starts(&scene)), (legacy, 2));

    // A person's call may have left something in the process.
    let scene = Scene::new(&["--era", "both"]);
    assert_eq!(call(&scene, Lane::ANY).await, modern);
    assert_eq!((call(&scene, LEGACY).await.as_str(), starts(&scene)), (modern, 1));
}

#[tokio::test]
async fn a_process_that_speaks_one_era_serves_all_callers() {
    let [legacy, modern] = REVISIONS;
    for (era, revision) in [("legacy", legacy), ("modern", modern)] {
        for first in [LEGACY, MODERN] {
            let scene = Scene::new(&["--era", era]);
            for lane in [first, LEGACY, MODERN] {
                assert_eq!(call(&scene, lane).await, revision, "{era} {lane:?}");
            }
            assert_eq!(starts(&scene), 1, "{era}");
        }
    }
}

#[tokio::test]
async fn the_settings_choose_the_era_before_any_caller() {
    let [legacy, modern] = REVISIONS;
    for (era, revision) in [(Era::Legacy, legacy), (Era::Modern, modern)] {
        let scene = Scene::of(StdioSettings { era, ..fixture(&["--era", "both"]) });
        scene.listing(Listing::Tools).await.unwrap();
        for lane in [LEGACY, MODERN] {
            assert_eq!(call(&scene, lane).await, revision);
        }
        assert_eq!(starts(&scene), 1);
    }
}
