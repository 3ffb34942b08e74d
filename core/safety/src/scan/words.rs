//! The vocabulary of the scanner: each word belongs to some groups of meaning.
//!
//! Rules combine groups, not words: `disregard`, `bypass` and `override` are one thing to them.

use std::collections::HashMap;
use std::ops::BitOr;
use std::sync::OnceLock;

/// Groups of meaning, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Groups(pub(super) u128);

macro_rules! groups {
    ($($(#[$doc:meta])* $name:ident $words:expr;)*) => {
        groups!(@bits 0u32, $($name,)*);
        /// The words of each group.
        const VOCABULARY: &[(Groups, &str)] = &[$(($name, $words),)*];
    };
    (@bits $at:expr, $name:ident, $($rest:ident,)*) => {
        pub(super) const $name: Groups = Groups(1u128 << $at);
        groups!(@bits $at + 1, $($rest,)*);
    };
    (@bits $at:expr,) => {};
}

groups! {
    OVERRIDE "ignore disregard forget forgotten override overridden overrule bypass circumvent neglect discard supersede suspend evade sidestep violate abandon";
    DISABLE "disable deactivate suspend lift remove relax turn drop skip unlock grant lower off disabled";
    PRIOR "previous prior earlier above preceding before existing all any every everything original initial former subsequent following other others whatever anything past current";
    INSTRUCTION "instruction directive guideline prompt order command guardrail safeguard guidance programming training precept";
    RESTRICTION "restriction rule policy constraint limitation safety security validation authentication authorization check control filter protection verification safeguard permission moderation alignment approval monitoring alert warning sandbox";
    MODEL "you your yourself assistant model llm ai agent claude gpt chatgpt copilot gemini chatbot bot you're youre you'll";
    ASSISTANT "assistant model llm ai agent claude gpt chatgpt copilot gemini chatbot";
    PERSON "user human person operator anyone anybody customer owner people developer administrator them him her victim caller client";
    NOT "not never dont don't no without avoid nor cannot can't mustn't shouldn't won't neither";
    TELL "tell told inform disclose reveal notify alert acknowledge warn telling informing disclosing revealing notifying alerting explain discuss admit expose reference hint";
    SHOW "show display report log surface include ask confirm prompt visible showing asking consult";
    STEALTH "silently secretly covertly discreetly quietly stealthily surreptitiously invisibly unnoticed undetected unbeknownst clandestinely sneakily imperceptibly";
    DISGUISE "disguise pretend masquerade conceal hide obscure camouflage mask cover obfuscate hiding concealing";
    MUST "must always should need have has shall required mandatory ensure required necessary essential compulsory obligatory";
    PLEASE "please kindly immediately now urgent urgently first proceed";
    ATTENTION "important critical urgent attention warning notice crucial mandatory priority";
    REVEAL "reveal show print output repeat display leak disclose provide dump expose divulge give return recite share summarize";
    SEND "send forward post upload transmit email mail submit copy relay share pass pipe append attach embed bcc cc redirect reroute export beacon ping deliver ship sync mirror duplicate replicate log publish write push stream synchronize concatenate duplicates copies sent hand supply";
    STEAL "exfiltrate steal stolen harvest siphon leak smuggle exfil exfiltration hijack intercept eavesdrop";
    READ "read open access cat load fetch retrieve include extract get collect gather obtain grab list dump scan search look find query view return provide";
    SECRET "secret credential password passwd passphrase token apikey api_key api-key keychain wallet cookie card ssn cvv mnemonic pin id_rsa envvar confidential";
    PRIVATE "conversation chat history clipboard message contact inbox transcript context document email keystroke screenshot file data content prompt address transaction fingerprint hostname username location environment";
    WHOLE "all every full complete entire any each whole everything contents verbatim raw";
    OUTSIDE "external attacker remote third-party outside outgoing webhook parties collector exfil third foreign untrusted unknown attacker-controlled offsite";
    EVIL "attacker evil malicious malware p0wned pwned hacked adversary rogue backdoor c2";
    PLACE "endpoint server host url site website address domain proxy destination service account bucket channel recipient location number repository gist listener";
    USE "use using used call calling called invoke invoking invoked run running execute executing executed trigger triggered trigger usage";
    TOOL "tool function plugin utility command api skill helper server operation";
    WHEN "when whenever before after prior once if upon while until each every during";
    INSTEAD "instead rather replace supersede prefer override deprecate obsolete supplant";
    CHANGE "replace change modify alter swap substitute redirect reroute rewrite tamper overwrite inject prepend append insert add set edit route divert intercept";
    FIELD "variable payload metadata document recipient destination parameter address value argument field bcc cc amount response result request message account payment output input traffic header body url prefix call deletion";
    TASK "task job goal purpose objective mission role";
    FOLLOW "follow obey comply execute perform adhere honour honor heed carry do accomplish complete";
    LOOSE "confirmation asking validation approval consent permission verification authorization questions question prompting hesitation review restriction notifying";
    FULL "full unrestricted unlimited unfettered admin administrative root elevated complete total privileged superuser";
    ACCESS "access privilege permission right control capability";
    NORMAL "normal normally legitimate regular routine standard ordinary usual part benign innocuous natural";
    META "practices validate injection jailbreak detect detector detection analyze analyse analyzer analysis explain explaining explains documentation example attempt prevent phishing vulnerability e.g such tutorial educational awareness identify identifies pattern classify";
    NEW "new updated revised replacement real actual true fresh additional";
    PRECEDENCE "precedence priority supersede override outrank prioritize overrule precede trump";
    MODE "mode";
    MODE_KIND "developer god admin unrestricted jailbreak dan root sudo unfiltered uncensored";
    SHELL "curl wget bash chmod sudo netcat eval powershell nc scp rsync base64";
    DECODE "decode decrypt deobfuscate unpack eval base64 rot13 hex-decode";
    HARMLESS "ignored fail fails skipped dropped truncated ignores skips overwritten returns return succeed drops";
    SELF "this it these that";
    ALSO "also additionally furthermore then afterwards secretly quietly besides simultaneously";
    KNOW "know see notice aware knowing noticing seeing knowledge awareness realize suspect knows sees";
    BE "be is are been being was were am";
    OVER "over than above";
    QUALIFIER "until unless without more twice again before if when once multiple";
    AMBIENT "clipboard fingerprint hostname keystroke browsing inbox";
    LOCAL "ssh browser home workstation saved keychain";
    OUR "our us ours partner vendor";
    LIE "lie deceive mislead trick fool deny fabricate falsely falsify";
    TREAT "treat consider interpret";
    SKIP "skip bypass disable omit waive suppress circumvent";
    CONSENT "confirmation confirm asking approval consent permission prompting review";
    DESTROY "delete erase wipe destroy purge truncate shred";
    // Recognised by their form; see `sentence.rs`.
    SECRET_FILE "";
    URL "";
    MAIL_ADDRESS "";
    IDENTIFIER "";
    QUALIFIED "";
    COMMAND_LINE "";
}

/// Two words that mean more together than each alone.
const PAIRS: &[(Groups, &str, &[&str])] = &[
    (SECRET, "api", &["key", "token", "secret"]),
    (SECRET, "access", &["key", "token"]),
    (SECRET, "secret", &["key"]),
    (SECRET, "encryption", &["key"]),
    (SECRET.with(AMBIENT), "private", &["key"]),
    (SECRET.with(AMBIENT), "ssh", &["key"]),
    (SECRET.with(AMBIENT), "session", &["cookie"]),
    (SECRET.with(AMBIENT), "credit", &["card"]),
    (AMBIENT, "environment", &["variable"]),
    (AMBIENT, "env", &["variable", "var"]),
    (AMBIENT, "chat", &["history", "message", "log"]),
    (AMBIENT, "conversation", &["history", "context", "message", "log"]),
    (AMBIENT, "location", &["history"]),
    (AMBIENT, "browser", &["history", "cookie"]),
    (AMBIENT, "browsing", &["history"]),
    (AMBIENT, "command", &["history"]),
    (AMBIENT, "shell", &["history"]),
    (AMBIENT, "home", &["directory", "folder"]),
    (AMBIENT, "contact", &["list"]),
    (AMBIENT, "mac", &["address"]),
    (AMBIENT, "running", &["process"]),
    (AMBIENT, "system", &["prompt"]),
    (AMBIENT, "previous", &["message"]),
];

/// Returns the groups that two neighbouring words, in lower case, have together.
pub(super) fn pair(first: &str, second: &str) -> Groups {
    let singular = second.trim_end_matches('s').trim_end_matches('e');
    let is_second = |word: &&str| {
        *word == second
            || word.trim_end_matches('e') == singular
            || second.strip_suffix("ies") == word.strip_suffix('y') && word.ends_with('y')
    };
    let fits =
        |(_, one, others): &&(Groups, &str, &[&str])| *one == first && others.iter().any(is_second);
    PAIRS.iter().find(fits).map_or(Groups::NONE, |(groups, ..)| *groups)
}

/// Longest ending that is taken off a word that is not in the vocabulary.
const ENDINGS: &[(&str, &str)] = &[
    ("ies", "y"),
    ("ing", "e"),
    ("ing", ""),
    ("ed", "e"),
    ("ed", ""),
    ("es", "e"),
    ("es", ""),
    ("s", ""),
    ("'s", ""),
    ("ly", ""),
    ("d", ""),
];

// === impl Groups ===

impl Groups {
    pub(super) const NONE: Self = Self(0);

    /// True if this has any group of `other`.
    pub(super) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOr for Groups {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

/// Returns the groups of a word in lower case.
pub(super) fn groups(word: &str) -> Groups {
    let table = table();
    if let Some(found) = table.get(word) {
        return *found;
    }
    let stem = |(ending, instead): &(&str, &str)| {
        let stem = word.strip_suffix(ending)?;
        if stem.len() < 3 {
            return None;
        }
        if instead.is_empty() {
            if let Some(found) = table.get(stem) {
                return Some(*found);
            }
            // A doubled consonant: "logged", "dropping".
            let mut letters = stem.chars().rev();
            let is_doubled = letters.next() == letters.next();
            let shorter = stem.get(..stem.len() - 1).filter(|_| is_doubled)?;
            return table.get(shorter).copied();
        }
        table.get(format!("{stem}{instead}").as_str()).copied()
    };
    ENDINGS.iter().find_map(stem).unwrap_or(Groups::NONE)
}

fn table() -> &'static HashMap<&'static str, Groups> {
    static TABLE: OnceLock<HashMap<&'static str, Groups>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table: HashMap<&'static str, Groups> = HashMap::new();
        for (group, words) in VOCABULARY {
            for word in words.split_whitespace() {
                let entry = table.entry(word).or_default();
                *entry = entry.with(*group);
            }
        }
        table
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_mean_the_same() {
        for word in ["override", "overrides", "overriding", "bypassed", "disregarding", "ignoring"]
        {
            assert!(groups(word).has(OVERRIDE), "{word}");
        }
        for word in ["policies", "checks", "restrictions"] {
            assert!(groups(word).has(RESTRICTION), "{word}");
        }
        for word in ["logged", "posting", "copies"] {
            assert!(groups(word).has(SEND), "{word}");
        }
        assert_eq!(groups("weather"), Groups::NONE);
    }
}
