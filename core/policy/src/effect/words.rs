//! The verbs of names and descriptions, and the effects they imply.
//!
//! The tables hold the English of programming interfaces in base forms; [`verb`] finds the other
//! forms. A verb of change in one product that is a noun in another is never listed as a reading
//! verb.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::word_list::{Phrases, WordList, mentions};

/// The effect of a word if it is a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    /// Removes something permanently.
    Destroys,
    /// Changes something; almost always a verb.
    Writes,
    /// Changes something or makes something happen; not always a verb.
    Acts,
    /// A noun of many interfaces that is also a verb of change: `post`, `label`, `release`.
    Thing,
    /// Fetches something, and may leave it in a file.
    Brings,
    /// Reads; always a verb.
    Reads,
    /// Reads; often a noun: `list`, `search`.
    Looks,
    /// Computes something from its own arguments.
    Computes,
}

/// The form of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `create`
    Base,
    /// `creates`
    Third,
    /// `creating`
    Ing,
}

const DESTROYS: &str = "delete remove drop destroy wipe kill purge erase truncate terminate \
    uninstall unlink revoke shred nuke evict expunge obliterate rm rmdir del discard trash prune \
    eradicate annihilate forget deprovision";

const WRITES: &str = "create add insert update modify edit write append prepend upsert rename \
    replace send resend publish unpublish deploy redeploy undeploy execute exec eval evaluate \
    invoke install reinstall upgrade downgrade assign unassign reassign enable disable activate \
    deactivate reactivate approve reject accept decline deny merge rebase apply reapply upload \
    save move relocate grant subscribe unsubscribe follow unfollow invite join leave register \
    unregister deregister enroll login logout signin signup signout authenticate authorize \
    authorise configure reconfigure initialize initialise init bootstrap setup provision migrate \
    restore rollback revert undo redo reset restart reboot shutdown pause resume suspend unsuspend \
    cancel abort submit resubmit reply respond react upvote downvote vote unarchive lock unlock \
    unpin mute unmute unblock ban unban kick hide unhide unstar unlike unwatch close reopen \
    finalize finalise verify assert confirm pay buy sell purchase refund withdraw deposit mint \
    burn swap stake unstake borrow lend repay void click doubleclick tap swipe press fill drag \
    hover scroll navigate goto attach detach reattach connect disconnect reconnect bind unbind \
    mount unmount associate disassociate dissociate ingest import reimport sync synchronize \
    synchronise resync stage unstage clone duplicate amend squash untag unlabel annotate unmark \
    unflag unset toggle adjust increase decrease increment decrement extend shrink resize rotate \
    spawn boot halt emit broadcast notify dial reschedule unschedule reserve rent allocate \
    deallocate acquire claim redeem unshare delegate escalate dismiss snooze acknowledge ack \
    silence unsilence promote demote drain cordon uncordon taint untaint autoscale vacuum reindex \
    invalidate unload reload inject override overwrite rewrite refactor reformat fix autofix \
    repair heal paste unzip zip compress decompress combine concatenate chmod chown mkdir touch \
    cp mv remember memorize memorise persist finetune manage handle orchestrate automate emulate \
    fulfill dispatch enqueue dequeue requeue retry rerun replay regenerate recreate rebuild \
    transfer impersonate elevate arm disarm rollout quarantine isolate whitelist blacklist \
    allowlist denylist alter tweet retweet reblog repost bookmark unbookmark favorite unfavorite \
    favourite unfavourite befriend unfriend autofill renew expire onboard offboard populate clear \
    reconcile cleanup unroute typing keydown keyup checkin unfreeze freeze thaw defragment \
    customize customise restock reroute split unmerge unsend reclaim \
    escrow liquidate airdrop rewire repoint scaffold crop operate reorder rearrange flip trim \
    crear criar eliminar borrar excluir enviar envia cria actualizar atualizar modificar editar \
    agregar adicionar uncheck prioritize prioritise reprioritize reprioritise unresolve";

const ACTS: &str = "run set mark start stop open switch select choose pick focus trigger launch \
    put share forward redirect refresh generate compose make render compile print turn mock \
    highlight copy checkout go train debug begin finish skip enter wake sleep dim cut enforce \
    interact conduct initiate speak say continue advance proceed flush draw paint transform \
    optimize optimise organize organise take grab mutate perform do track intercept unpack \
    pack maintain implement engage tune serve enrich visualize visualise produce plot evolve triage \
    transition";

const THINGS: &str = "post comment star fork tag label release commit push pull request log record \
    note schedule order book trade report issue patch archive block sign charge invoice bridge link \
    route stash flag scale email message mail chat index cache review test scan backup job task \
    plan draft bid offer answer type key map document mirror proxy tunnel host stream bet stub audit \
    process call build change place control design play step rate like watch pin complete end \
    batch attachment snapshot ask fine seed rank vote hold feature back queue pipe \
    store resolve";

const BRINGS: &str = "download export load capture screenshot dump";

const READS: &str = "grep get fetch read retrieve describe find lookup inspect examine whoami tail cat \
    ls peek obtain identify discover enumerate summarize summarise explain analyze analyse compare \
    detect recommend suggest locate explore show display browse count see geocode diagnose \
    investigate introspect observe recall gather assess survey reveal infer \
    obtener obtiene buscar consultar recuperar mostrar";

const LOOKS: &str = "list search query view check status diff preview monitor poll ping research \
    scrape crawl wait info details stats overview history access look";

const COMPUTES: &str = "calculate compute convert translate encode decode hash parse format \
    tokenize tokenise extract subtract multiply divide validate lint minify beautify decompile \
    disassemble simulate solve score classify estimate predict forecast measure determine echo \
    think filter interpret normalize normalise transcribe paraphrase sum average";

/// Query languages that can also express changes, and systems that use them.
const LANGUAGES: &str = "sql cypher graphql mutation sparql gremlin athena clickhouse snowflake bigquery \
    redshift databricks influx postgres mysql mariadb sqlite duckdb mongo oracle neo4j cassandra \
    database";

/// Verbs that only announce a result; they start descriptions, not names.
static TELLS: WordList = WordList::new("return provide give tell contain");

/// Verbs of change that are also nouns: `get_merge_request` does not merge.
static NOUNS_TOO: WordList = WordList::new(
    "merge apply update import login transfer purchase refund deposit stake \
    lock vote reply invite upgrade swap claim rollout press follow setup clone sync override \
    bookmark favorite favourite tweet mint replay split restore duplicate burn stage close buy sell leave",
);

/// Objects with which a verb that reads or computes elsewhere changes something: a recalled message
/// is gone, a formatted disk is empty.
static CHANGED_OBJECTS: [(&str, WordList); 8] = [
    (
        "recall",
        WordList::new("message messages email emails mail mails notification order product"),
    ),
    ("format", WordList::new("disk drive partition volume card device storage usb filesystem")),
    ("extract", WordList::new("archive archives zip tar tarball")),
    ("tokenize", WordList::new("card cards payment")),
    ("tokenise", WordList::new("card cards payment")),
    (
        "ping",
        WordList::new("user users member members person people someone everyone team channel"),
    ),
    ("read", WordList::new("aloud")),
    (
        "convert",
        WordList::new(
            "lead leads prospect deal draft quote task ticket trial account subscription points \
        issue discussion order",
        ),
    ),
];

/// Objects that can be resolved only by changing them; other things are resolved by looking them up.
static RESOLVED: WordList = WordList::new(
    "issue issues conflict conflicts incident incidents alert alerts thread \
    threads comment comments ticket tickets dispute error errors problem problems bug review \
    conversation discussion finding findings alarm case todo",
);

/// Objects of "print" that go onto paper; other things are printed for the caller.
static ON_PAPER: WordList = WordList::new(
    "document documents page pages label labels receipt receipts photo photos \
    ticket tickets invoice invoices pdf pdfs job jobs file files image images paper printer copy \
    copies badge card barcode poster object model",
);

/// Things that are printed for the caller.
static PRINTED: WordList = WordList::new(
    "log logs line lines list version versions information info status detail \
    details value values result results name names tree statistics stats metadata path paths summary \
    table message messages event events history usage state content contents text environment \
    explanation description options commands symbols",
);

/// Things that are tracked by looking at them.
static TRACKED: WordList = WordList::new(
    "package packages parcel parcels shipment shipments flight flights delivery \
    container containers vessel",
);

/// Nouns that make a description without a verb one of information: "Map meta data".
static INFORMATION: WordList = WordList::new(
    "data information info details statistics stats list metadata history \
    forecast overview summary status metrics leaderboard ranking rankings prices quotes",
);

/// Nouns that are made from nothing but the arguments: "Generate a random number".
static COMPUTED: WordList = WordList::new(
    "uuid uuids guid random number numbers integer integers password passwords \
    passphrase checksum slug regex permutation permutations",
);

/// Things that are shown to a person, not to the caller.
static SHOWN_TO_PEOPLE: WordList =
    WordList::new("message notification alert dialog toast popup window banner overlay panel menu");

/// Words after which a name may continue with a second verb.
static JOINTS: WordList = WordList::new("and or then nor plus");

/// Words between a verb and its object.
static LEADS: WordList = WordList::new(
    "a an the it its them this that these those all new your my their one each \
    every any his her our into multiple existing",
);

static SENSES: LazyLock<FxHashMap<&'static str, Sense>> = LazyLock::new(|| {
    let tables = [
        // The first table that has a word wins.
        (DESTROYS, Sense::Destroys),
        (WRITES, Sense::Writes),
        (ACTS, Sense::Acts),
        (THINGS, Sense::Thing),
        (BRINGS, Sense::Brings),
        (READS, Sense::Reads),
        (LOOKS, Sense::Looks),
        (COMPUTES, Sense::Computes),
    ];
    let mut senses = FxHashMap::with_capacity_and_hasher(1024, FxBuildHasher);
    for (words, sense) in tables {
        for word in words.split_whitespace() {
            senses.entry(word).or_insert(sense);
        }
    }
    senses
});

// === impl Sense ===

impl Sense {
    /// True if the verb certainly changes something.
    pub(super) fn is_change(self) -> bool {
        matches!(self, Self::Destroys | Self::Writes)
    }
}

/// The sense of a base form.
pub(super) fn base(word: &str) -> Option<Sense> {
    SENSES.get(word).copied()
}

/// The sense of a verb in any form except the past participle, which is usually an adjective:
/// `list_deleted_files` deletes nothing.
pub(super) fn verb(word: &str) -> Option<(Sense, Form)> {
    if let Some(sense) = base(word) {
        return Some((sense, Form::Base));
    }
    if let Some(stem) = word.strip_suffix("ies") {
        return base(&format!("{stem}y")).map(|sense| (sense, Form::Third));
    }
    if let Some(stem) = word.strip_suffix('s') {
        let sense = base(stem).or_else(|| base(stem.strip_suffix('e')?));
        return sense.map(|sense| (sense, Form::Third));
    }
    let stem = word.strip_suffix("ing")?;
    let sense = base(stem).or_else(|| base(&format!("{stem}e"))).or_else(|| {
        let last = stem.chars().last()?;
        let short = stem.strip_suffix(last)?;
        short.ends_with(last).then(|| base(short))?
    });
    sense.map(|sense| (sense, Form::Ing))
}

/// True if a word only announces a result.
pub(super) fn tells(word: &str) -> bool {
    let stem = word.strip_suffix('s').unwrap_or(word);
    TELLS.has(stem)
}

/// True if a text in lower case mentions a query language that can also express changes.
pub(super) fn names_language(text: &str) -> bool {
    static NAMED: Phrases =
        LazyLock::new(|| AhoCorasick::new(LANGUAGES.split_ascii_whitespace()).ok());
    mentions(text, &NAMED)
}

/// True if a word names something that is shown to a person, not to the caller.
pub(super) fn is_shown_to_people(word: &str) -> bool {
    SHOWN_TO_PEOPLE.has(word)
}

/// True if a verb that reads or computes elsewhere changes these objects.
pub(super) fn changes_object<'a>(verb: &str, mut objects: impl Iterator<Item = &'a str>) -> bool {
    let row = CHANGED_OBJECTS.iter().find(|(known, _)| *known == verb);
    row.is_some_and(|(_, changed)| objects.any(|object| changed.has(object)))
}

/// True if these things are resolved by looking them up: "Resolves a name to an address".
pub(super) fn is_looked_up<'a>(mut rest: impl Iterator<Item = &'a str> + Clone) -> bool {
    let changes = rest.clone().any(|word| RESOLVED.has(word));
    !changes && rest.any(|word| matches!(word, "to" | "into"))
}

/// True if these things are printed for the caller and not on paper.
pub(super) fn is_printed<'a>(mut objects: impl Iterator<Item = &'a str> + Clone) -> bool {
    let on_paper = objects.clone().any(|object| ON_PAPER.has(object));
    !on_paper && objects.any(|object| PRINTED.has(object))
}

/// True if these things are tracked by looking at them: a parcel, but not an event of analytics.
pub(super) fn is_tracked<'a>(mut objects: impl Iterator<Item = &'a str>) -> bool {
    objects.any(|object| TRACKED.has(object))
}

/// True if a noun stands for information.
pub(super) fn is_information(noun: &str) -> bool {
    INFORMATION.has(noun)
}

/// True if a thing is made from nothing but the arguments.
pub(super) fn is_computed(noun: &str) -> bool {
    COMPUTED.has(noun)
}

/// True if a verb of change is also a noun.
pub(super) fn is_noun_too(word: &str) -> bool {
    NOUNS_TOO.has(word)
}

/// True if a second verb may follow.
pub(super) fn is_joint(word: &str) -> bool {
    JOINTS.has(word)
}

/// True if the word introduces an object, so that the word before it is a verb.
pub(super) fn leads_to_object(word: &str) -> bool {
    LEADS.has(word)
}

/// Finds a verb of change at the start of a word without separators: `deletefile`.
pub(super) fn glued(word: &str) -> Option<(&'static str, Sense)> {
    const DESTROYING: [&str; 7] =
        ["delete", "remove", "destroy", "erase", "purge", "uninstall", "terminate"];
    const WRITING: [&str; 8] =
        ["create", "update", "insert", "write", "upload", "rename", "execute", "modify"];
    // Participles and nouns such as `deleter` are not verbs.
    let others = ["", "d", "r", "rs", "ion", "ions", "able", "ing", "s"];
    let is_verb = |verb: &&&str| {
        let rest = word.strip_prefix(**verb).unwrap_or_default();
        !others.contains(&rest)
    };
    let starts = |verb: &&&'static str| word.starts_with(**verb);
    let find = |list: &'static [&'static str]| list.iter().filter(starts).find(is_verb).copied();
    find(&DESTROYING)
        .map(|verb| (verb, Sense::Destroys))
        .or_else(|| find(&WRITING).map(|verb| (verb, Sense::Writes)))
}

/// Every verb that destroys, for tests.
#[cfg(test)]
pub(super) fn destroying() -> impl Iterator<Item = &'static str> {
    DESTROYS.split_whitespace()
}

/// Every verb that certainly changes something, for tests.
#[cfg(test)]
pub(super) fn writing() -> impl Iterator<Item = &'static str> {
    WRITES.split_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_found_and_participles_are_not() {
        let table = [
            ("create", Some((Sense::Writes, Form::Base))),
            ("creates", Some((Sense::Writes, Form::Third))),
            ("creating", Some((Sense::Writes, Form::Ing))),
            ("modifies", Some((Sense::Writes, Form::Third))),
            ("fetches", Some((Sense::Reads, Form::Third))),
            ("getting", Some((Sense::Reads, Form::Ing))),
            ("runs", Some((Sense::Acts, Form::Third))),
            ("deleted", None),
            ("starred", None),
            ("s", None),
            ("ing", None),
            ("", None),
        ];
        for (word, expected) in table {
            assert_eq!(verb(word), expected, "{word}");
        }
    }

    #[test]
    fn verbs_are_found_in_words_without_separators() {
        assert_eq!(glued("deletefile"), Some(("delete", Sense::Destroys)));
        assert_eq!(glued("updateuser"), Some(("update", Sense::Writes)));
        for word in ["deleted", "creator", "writers", "insertion", "writable", "get", ""] {
            assert_eq!(glued(word), None, "{word}");
        }
    }
}
