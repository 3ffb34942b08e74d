//! Calls that are left to the client's own dialog, and those that are not.

use std::sync::Arc;

use capstan_hub::Call;
use capstan_model::{Caller, Front, Target};

use crate::scene::{Scene, WAIT};
use crate::world::{Person, json};

#[tokio::test(start_paused = true)]
async fn only_a_clients_call_that_the_default_asks_about_is_left_to_the_client() {
    for (front, tool, ground) in [
        (Front::Gateway, "files__write", "client_confirms"),
        (Front::Gateway, "notes__write", "client_confirms"),
        (Front::Gateway, "files__pay", "nobody"),
        (Front::Terminal, "files__write", "nobody"),
        (Front::Cli, "files__write", "nobody"),
    ] {
        let mut scene = Scene::new();
        let approvals = scene.approvals("1", WAIT).leaving_defaults_to_the_client();
        scene.world.change(|hub| hub.approvals = Arc::new(approvals));
        let call = Call::new(Caller::named("it", front), Target::tool(tool), Some(&json("{}")));
        let ran = scene.call_in(&scene.world.session, call, Person::nobody()).await;
        assert_eq!(ran.is_ok(), ground == "client_confirms", "{front:?} {tool}: {ran:?}");
        assert_eq!(scene.grounds(), [ground], "{front:?} {tool}");
    }
}
