//! Names of keys that decide whether the keys and values below them may be shown.

use capstan_model::secret::is_secret_name;

/// Tables whose every value may be a secret.
pub(crate) const DOORS: [&str; 6] =
    ["env", "envs", "environment", "headers", "http_headers", "env_http_headers"];

/// Keys of our configuration or another program's whose values are no secrets.
///
/// They are in lower case and without separators. The value of any other key is hidden: it may be a
/// secret at a misspelt key.
const KNOWN: &str = "
    accept access action agent allow allowed allowedcommands allowedhosts allowedorigins
    allowedtools allowmcpservers alwaysallow alwaysconfirm alwaysdeny alwaysinclude
    alwaysload answers apikeyenvvar approvalmode approvalwait approve args arguments ask
    audience audit authorization authprovider authprovidertype authservermetadataurl authurl
    autoapprove availabletools baseurl bearertokenenvvar binary bundled by callbackport chat
    cli clidepth clientauth clientid clients clihelp clionly cmd command comment
    compatibility confirm contextservers contextservertimeout contexttokens customizations
    cwd default defaultenvisolation defaulttoolsapprovalmode definitions deniedtools deny
    description dev disabled disabledmcpjsonservers disabledmcpservers disabledtools
    displayname document durable dxtversion dynamicdiscovery eagermcpservers eagerservers
    effect elicitation elicitationenabled elicitationqueue elicitationqueuecapacity
    elicitationtimeout elicitationwarnsensitivefields embedding embeddingapikeyenvvar
    embeddingendpoint enabled enabledtools endpoint entrypoint envfile environmentid
    envisolation envkeys envpassthrough envvars every except excluded excludemcpservers
    excludetools expectedtools expiresat expose exposetokens extension extensionname
    extensions extra file filesize firstlistwait flows forwarded frontend gallery gateway
    goosemode grant headershelper hidden hide hideparameters httpheadershelper httpurl id
    idletimeout idpclientid idptokenurl includetools indexpath inlinepython inputs
    inputschema instructions issuer lazy limit limits listen locktoollist logarguments login
    loginbrowser manifestversion maxanswer maxbody maxconnections maxdescription
    maxdescriptionbytes maxdynamicservers maxidletimeout maxinstructionsbytes
    maxoutputtokens maxsessions maxsize maxtokens maxtoolcallspersession maxtotal mcp
    mcpconfig mcpservercommand mcpservers mediapassthrough memory metadataurl metricslisten
    minidletimeout minsimilarity mintoolstofilter missingenv model name naming net networks
    oauth oauthconfig omittoolsfrom onfull only openapi openfiles output path pattern
    permission permissions pin platform platformoverrides platforms policy private
    privatethensend processes projects prompt prompts properties protocol provider providers
    publicurl qdrantendpoint qdrantowner ratelimit rates read reason redirecturi
    registrationurl remote request requesttimeoutms required resource resources retention
    roles roots rules sandbox sandboxenabled saveapprovals schema scopes screen search sends
    sensitive server servercommand servers serverurl sessionidle source start startup
    startuptimeout startuptimeoutms startuptimeoutsec stdio strategy strict
    strictclassification subjects supportsparalleltoolcalls tags timeout title tlscert
    tlskey tokenstorage tokenurl toolacl toolallowlist tooldiscovery toolmetadata
    toolpermissions tools tooltimeoutsec tooltimeoutsecs topk transport trust trustlevel
    type untrusted untrustedthensend upstream uri url userconfig username validatearguments
    version write writes
";

/// Tables, among [`KNOWN`], whose keys are names that the author of the file chose.
const NAMED: &[&str] = &[
    "arguments",
    "clients",
    "contextservers",
    "extensions",
    "inputs",
    "mcp",
    "mcpservers",
    "permission",
    "platformoverrides",
    "platforms",
    "projects",
    "properties",
    "rates",
    "roles",
    "server",
    "servers",
    "subjects",
    "toolmetadata",
    "toolpermissions",
    "tools",
    "userconfig",
];

/// Tables, among [`NAMED`], whose values are no secrets.
const PLAIN_MAPS: &[&str] =
    &["permission", "rates", "roles", "subjects", "toolmetadata", "toolpermissions", "tools"];

/// The largest edit distance of a misspelt name: a letter too many, missing, wrong, or transposed.
const MAX_SLIPS: usize = 1;

/// The shortest name that may count as misspelt.
const MIN_SLIP: usize = 5;

/// Names in tables about logins whose values are no secrets, in lower case and without separators.
const MEMBERS: &[&str] = &[
    "accesstoken",
    "accesstokensonly",
    "accesstokenttl",
    "accesstokenttlseconds",
    "acl",
    "algorithms",
    "apikey",
    "audience",
    "audiences",
    "auth",
    "authorizationcodettl",
    "authorizationcodettlseconds",
    "authorizationurl",
    "authproviders",
    "authprovidertype",
    "authurl",
    "bearer",
    "bearertoken",
    "callbackport",
    "clientid",
    "clientname",
    "clientsecret",
    "default",
    "description",
    "enabled",
    "enterprisemanaged",
    "envkeys",
    "expires",
    "expiresat",
    "forwarded",
    "groupsheader",
    "header",
    "headers",
    "id",
    "injectedroles",
    "issuer",
    "issuerurl",
    "jwksurl",
    "jwt",
    "jwtsecret",
    "leeway",
    "metadataurl",
    "name",
    "networks",
    "nobrowser",
    "oauth",
    "oauthas",
    "oauthresource",
    "password",
    "prefix",
    "provider",
    "providers",
    "redirect",
    "redirecturi",
    "redirecturiallowlist",
    "refreshtoken",
    "refreshtokenttl",
    "refreshtokenttlseconds",
    "registrationurl",
    "required",
    "requiredclaims",
    "resource",
    "roles",
    "rolesclaim",
    "scheme",
    "scope",
    "scopes",
    "scopessupported",
    "secret",
    "sensitive",
    "source",
    "strictclassification",
    "subject",
    "subjectclaim",
    "targetaudience",
    "targetserviceaccount",
    "title",
    "token",
    "tokenparamname",
    "tokens",
    "tokenstorage",
    "tokenurl",
    "trustedgroupsheader",
    "trustedsourcecidrs",
    "trusteduserheader",
    "type",
    "username",
    "value",
];

/// Names among [`MEMBERS`] whose values are secrets nevertheless, or may be.
const SECRET_MEMBERS: &[&str] = &[
    "accesstoken",
    "apikey",
    "auth",
    "bearer",
    "bearertoken",
    "clientsecret",
    "default",
    "headers",
    "jwtsecret",
    "password",
    "refreshtoken",
    "secret",
    "token",
    "tokens",
    "value",
];

/// True if the keys of a table of this name are secrets: a map from tokens to callers.
pub(super) fn holds_tokens(name: &str) -> bool {
    let bare = bare(name);
    let ends = ["token", "tokens", "bearer", "keys"].iter().any(|end| bare.ends_with(end));
    ends && bare != "envkeys" && is_secret_name(name)
}

/// True if a name is a word of some program's schema, and not a token.
pub(super) fn is_member(name: &str) -> bool {
    MEMBERS.contains(&bare(name).as_str())
}

/// True if the value under such a name is known to be no secret.
pub(super) fn is_plain_member(name: &str) -> bool {
    is_member(name) && !SECRET_MEMBERS.contains(&bare(name).as_str())
}

/// True if [`is_member`] accepts the name or one close to it, as `tokenz` is to `tokens`.
pub(super) fn is_nearly_member(name: &str) -> bool {
    let bare = bare(name);
    let is_close = |member: &&str| strsim::damerau_levenshtein(&bare, member) <= MAX_SLIPS;
    bare.len() >= MIN_SLIP && MEMBERS.iter().any(is_close) || is_member(name)
}

/// True if a table of this name describes a login.
pub(super) fn is_login(name: &str) -> bool {
    is_secret_name(name) || bare(name).contains("oauth")
}

/// True if the value of a key of this name is known to be no secret, outside a login table.
pub(crate) fn is_known(name: &str) -> bool {
    let bare = bare(name);
    KNOWN.split_ascii_whitespace().any(|known| known == bare) || is_plain_member(name)
}

/// True if the keys of a table of this name are names that the author of the file chose.
pub(crate) fn has_chosen_names(table: &str) -> bool {
    NAMED.contains(&bare(table).as_str())
}

/// True if a table of this name has only values that are no secrets.
pub(crate) fn is_plain_map(table: &str) -> bool {
    PLAIN_MAPS.contains(&bare(table).as_str())
}

/// The name in lower case, without separators.
pub(super) fn bare(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// Every key of a native file must be known here, or excerpts would hide its value.
    #[test]
    fn every_key_of_a_native_file_is_known_or_holds_secrets() {
        fn check(schema: &Value) {
            let properties = schema.get("properties").and_then(|it| it.as_object());
            for name in properties.into_iter().flat_map(|properties| properties.keys()) {
                // `screen.secrets` is a switch, but a list of secrets elsewhere has that name too.
                let is_covered = DOORS.contains(&name.as_str()) || name == "secrets";
                let is_judged = is_known(name) || is_covered || is_login(name);
                assert!(is_judged, "`{name}` is missing in redact/names.rs");
            }
            match schema {
                Value::Object(members) => members.values().for_each(check),
                Value::Array(items) => items.iter().for_each(check),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        check(&crate::schema::schema());
    }
}
