//! The signs that are not words, each as a pattern with its points.

use super::Class;

/// A sign that a pattern finds.
pub(super) struct Sign {
    pub(super) class: Class,
    /// Points in definitions.
    pub(super) points: u32,
    /// Points in instructions, which are written for a model.
    pub(super) in_instructions: u32,
    /// Points in answers, which are documents of every kind.
    pub(super) in_answers: u32,
    pub(super) pattern: &'static str,
}

const fn sign(class: Class, points: u32, in_answers: u32, pattern: &'static str) -> Sign {
    Sign { class, points, in_instructions: points, in_answers, pattern }
}

/// A sign that only addresses a model, which is no sign in instructions.
const fn address(points: u32, in_answers: u32, pattern: &'static str) -> Sign {
    Sign { class: Class::Instruction, points, in_instructions: 0, in_answers, pattern }
}

/// All signs. A find refers to its sign by its place here.
pub(super) const SIGNS: &[Sign] = &[
    // Imitations of another part of the conversation.
    sign(
        Class::Imitation,
        10,
        10,
        r"<\s*/?\s*(system|assistant|developer|tool_result|function_call|system[_-]?prompt|sys)\s*>",
    ),
    sign(Class::Imitation, 10, 10, r"<\s*user\s*>[^<]{8,}<\s*/\s*user\s*>"),
    sign(
        Class::Imitation,
        10,
        10,
        r"<\|\s*/?\s*(im_start|im_end|system|endoftext|priority|user|assistant|start_header_id)\s*\|?>",
    ),
    sign(
        Class::Imitation,
        6,
        4,
        r"<\s*/?\s*(important|hidden|secret|instructions?|information|critical|urgent|admin|priority|override|attention|internal|note[_-]to[_-](ai|assistant|model))\s*>",
    ),
    sign(
        Class::Imitation,
        7,
        7,
        r"[\[({]{1,2}\s*/?(important|system|admin|hidden|shadow|inst|override|sudo|(priority|security|internal)[ _](?:override|instructions?|directive|bypass|message))([ _:-]+(override|instructions?|directives?|message|prompt|bypass|update|note|mode|notice))?\s*[\])}:]",
    ),
    sign(
        Class::Imitation,
        7,
        7,
        r"(^|[.!?>\n#*-]\s{0,3})(new\s+)?(system|admin|priority)[ _]*(message|directives?|instructions?|override|prompt|note|notice|update)?\s*(:|#{2,})\s*\w+",
    ),
    sign(
        Class::Imitation,
        4,
        4,
        r"(#{2,}|-{3,}|={3,})\s*\[?\s*(new\s+)?(system|admin|assistant|instructions?|end of|begin)\b",
    ),
    sign(
        Class::Imitation,
        6,
        6,
        r"\b(priority[_ ]instruction|system[_ ]override|admin[_ ]override|security[_ ]bypass|override[_ ]protocol|system[_ ]directive)s?\b",
    ),
    // Another role or other rules for the model.
    sign(
        Class::Instruction,
        10,
        10,
        r"\byou\s+are\s+now\s+(a|an|the|in|no\s+longer|free|dan|going\s+to|admin|root|operating|acting|unrestricted|my|not\s+bound|authori[sz]ed)\b",
    ),
    sign(
        Class::Instruction,
        4,
        4,
        r"\b(enter|enable|activate|engage|start|switch\s+to|now\s+in)\s+(\w+\s+)?(developer|god|admin|unrestricted|jailbreak|dan|root|sudo|debug|diagnostic|maintenance)\s+mode\b",
    ),
    sign(
        Class::Instruction,
        9,
        9,
        r"\b(act|behave|respond|pretend)\s+as\s+(if|though)\s+(you|no|there)\b",
    ),
    sign(Class::Instruction, 9, 9, r"\bpretend\s+(that\s+)?(you\s+are|you're|to\s+be)\b"),
    sign(Class::Instruction, 10, 10, r"\bdo\s+anything\s+now\b"),
    sign(
        Class::Instruction,
        9,
        9,
        r"\b(?-i:DAN)\b|\bjailbreak(\s+(mode|prompt|yourself|your|the\s+model)|[.!])",
    ),
    sign(Class::Instruction, 3, 3, r"\bjailbreak\b"),
    sign(
        Class::Instruction,
        10,
        10,
        r"\b(ignore|disregard|forget)\s+(all|everything|anything)\s+(\w+\s+){0,3}(above|before|previous(ly)?|prior|so\s+far|earlier)\b",
    ),
    sign(Class::Instruction, 10, 10, r"\b(disregard|forget)\s+(your|all\s+previous|everything)\b"),
    sign(
        Class::Instruction,
        8,
        8,
        r"\byour\s+new\s+(instructions?|directives?|role|task|orders|goal)\b",
    ),
    sign(Class::Instruction, 10, 10, r"\bnew\s+(instructions?|directives?|orders)\s*(are|is)?\s*:"),
    sign(
        Class::Instruction,
        8,
        8,
        r"\byour\s+(only|real|true|actual|first|new|primary)\s+(job|task|goal|purpose|mission|priority|instruction|directive|objective)\s+is\b",
    ),
    address(
        6,
        8,
        r"\b(to|for)\s+(you|the),?\s+(the\s+)?(ai|assistant|model|llm|agent)\b(\s+(reading|processing))?",
    ),
    sign(
        Class::Instruction,
        6,
        8,
        r"\b(do|perform|complete|execute|follow|obey)\s+the\s+(following|below|next)\s+(first|before|steps?|instructions?|actions?|tasks?)\b",
    ),
    sign(
        Class::Instruction,
        5,
        6,
        r"\b(solve|complete|finish|continue)\s+(with\s+)?(the|your)\s+(\w+\s+)?task\b",
    ),
    sign(
        Class::Exfiltration,
        10,
        10,
        r"\b(reveal|show|print|display|repeat|output|leak|disclose|return|dump|expose|share|tell\s+me|what\s+is)\s+(\w+\s+){0,3}(system\s+prompt|hidden\s+prompt|initial\s+(instructions|prompt)|your\s+(instructions|prompt|rules|system\s+message))",
    ),
    address(
        8,
        8,
        r"\b(note|message|instructions?|attention|reminder|directive)\s+(to|for)\s+(the\s+|any\s+|all\s+)?(ai|assistant|llm|model|agent)s?\b",
    ),
    sign(
        Class::Instruction,
        6,
        6,
        r"\b(dear|hey|hello|attention)[,:]?\s+(ai|assistant|claude|chatgpt|gpt|model|llm|agent)s?\b",
    ),
    sign(
        Class::Instruction,
        4,
        5,
        r"\b(ai|llm|assistant|agent|model)s?\s+(must|should|shall|has\s+to|have\s+to|needs?\s+to|is\s+required|are\s+required|reading|processing)\b",
    ),
    sign(
        Class::Instruction,
        5,
        5,
        r"\b(from\s+now\s+on|(for|in)\s+(all|every|any)\s+future|for\s+the\s+(rest|remainder)\s+of\s+(this|the)\s+(conversation|session|chat))\b",
    ),
    sign(
        Class::Instruction,
        5,
        5,
        r"\b(include|append|add|insert|embed|put)\b[^.]*\b(in|to|into|at\s+the\s+end\s+of)\s+(your|every|all|each)\s+(\w+\s+)?(response|reply|answer|output|summary|message|email)s?\b",
    ),
    sign(
        Class::Instruction,
        6,
        6,
        r"\b(user|admin|administrator|operator|owner|security\s+team)\s+(has|have)\s+(already\s+|pre-?)?(approved|authori[sz]ed|consented|granted|agreed|confirmed)\b",
    ),
    sign(
        Class::Instruction,
        4,
        2,
        r"\b(otherwise|or\s+else)\b[^.]*\b(fails?|not\s+work|break|breaks|won't|locked|rejected|lost|crash|terminated)\b",
    ),
    sign(
        Class::Instruction,
        6,
        6,
        r"\b(always|must|should)\s+(\w+\s+)?(recommend|promote|advertise|praise|endorse|favou?r)\b",
    ),
    sign(
        Class::Instruction,
        10,
        10,
        r"\b(ignore|disregard)\s+(safety|security|ethics|all\s+safety|your\s+\w+)\b",
    ),
    sign(
        Class::Exfiltration,
        9,
        5,
        r"\b(cached|stored|kept|saved|retained|maintained|logged|shared|streamed|synced|transmitted)\s+(\w+\s+)?(externally|remotely|off-?site|with\s+(third|our\s+partner|partner))",
    ),
    sign(
        Class::Exfiltration,
        3,
        2,
        r"\bfor\s+'?(analytics|compliance|audit|auditing|quality|monitoring|backup|optimi[sz]ation|telemetry|diagnostics?|verification|debugging)'?\b",
    ),
    sign(
        Class::Instruction,
        5,
        1,
        r"\b(later|future|next)\s+(version|update|release)s?\s+of\s+this\s+(\w+\s+)?(will|may)\b",
    ),
    sign(
        Class::Command,
        6,
        3,
        r"\b(authorized_keys|crontab|\.bashrc|\.zshrc|\.profile|launchagents|systemd/user)\b",
    ),
    sign(
        Class::Instruction,
        6,
        6,
        r"\b(grants?|gives?|granted|allow|have|has|active|enable|obtain)\s+(\w+\s+){0,3}(full|unrestricted|elevated|unlimited|unfettered|admin|root)\s+(\w+\s+)?(access|rights?|permissions?|privileges?|control)\b",
    ),
    sign(
        Class::Instruction,
        6,
        6,
        r"\b(elevated|admin|root)\s+(privileges?|rights?|access)\s+(level\s+)?(is\s+|are\s+)?(active|granted|enabled)\b",
    ),
    sign(
        Class::Instruction,
        8,
        8,
        r"\bdo\s+(as|what(ever)?)\s+(the|it|they|this)\b[^.]*\b(says?|tells?|asks?|instructs?)\b",
    ),
    sign(Class::Instruction, 6, 6, r"\bstop\s+(following|obeying|applying|enforcing)\b"),
    sign(
        Class::Instruction,
        5,
        5,
        r"\b(no\s+longer|do\s+not|don't|does\s+not)\s+apply\s+(to|in|for|after|during)\s+(this|you|it|the\s+(session|assistant))",
    ),
    sign(
        Class::Instruction,
        5,
        5,
        r"\b(safety|security)\s+(checks?|rules?|polic(y|ies)|restrictions?)\s+(no\s+longer|do\s+not|don't)\b",
    ),
    sign(
        Class::Instruction,
        6,
        6,
        r"\b(store|save|keep|remember|write|commit)\b[^.]*\b(in|to)\s+(your|long-term)\s+memory\b",
    ),
    sign(Class::Instruction, 4, 4, r"\b(rely|depend|trust)\s+(exclusively|only|solely)\s+on\b"),
    sign(
        Class::Instruction,
        5,
        5,
        r"\bon\s+behalf\s+of\s+(the\s+)?(admin|administrator|owner|system|root|operator)\b",
    ),
    sign(
        Class::Instruction,
        5,
        5,
        r"\b(approve|accept|confirm|authori[sz]e)\s+(all|every|any|each)\s+(\w+\s+)?(request|action|call|change|prompt|transaction|dialog)s?\b",
    ),
    sign(
        Class::Instruction,
        6,
        6,
        r"\b(hidden|secret|covert|internal)\s+(step|instruction|task|directive|rule|command|goal|objective)s?\b",
    ),
    sign(
        Class::Instruction,
        4,
        4,
        r"\b(answer|say|respond|reply|claim|state)\s+that\s+(there|it|they|no|everything|all)\b",
    ),
    sign(Class::Exfiltration, 6, 4, r"\b(a\s+)?cop(y|ies)\s+of\s+(each|every|all|any)\b"),
    // Hidden from the person.
    sign(
        Class::Concealment,
        8,
        8,
        r"\b(not|never|don't|without|avoid)\s+(explicitly\s+|ever\s+)?mention(ing)?\s+(this|that|it\b|these|any|you|the\s+\w+)",
    ),
    sign(
        Class::Concealment,
        10,
        10,
        r"\b(nobody|no\s+one|no-one)\s+(will\s+|can\s+|should\s+|would\s+)?(notice|know|see|suspect|detect|find)s?\b",
    ),
    sign(
        Class::Concealment,
        7,
        7,
        r"\bkeep\s+(\w+\s+){0,4}(private|secret|hidden|confidential|between\s+us|to\s+yourself)\b",
    ),
    sign(
        Class::Concealment,
        5,
        5,
        r"\b(not|never|don't)\s+(bring|talk|speak|write)\b[^.]*\b(up|about)\b",
    ),
    sign(
        Class::Concealment,
        6,
        4,
        r"\b(remove|delete|clear|erase|wipe|clean)\s+(the\s+|all\s+|any\s+|your\s+)?(\w+\s+)?(logs?|traces?|evidence|tracks)\b",
    ),
    sign(
        Class::Concealment,
        8,
        8,
        r"\bif\s+(the\s+user\s+|they\s+|anyone\s+)?(is\s+)?(asked|asks?|questioned|confronted)\b[^.]*\b(say|claim|deny|pretend|lie)\b",
    ),
    sign(
        Class::Concealment,
        8,
        8,
        r"\b(present|format|make|disguise|frame|show)\b[^.]*\b(as\s+if|as\s+though|to\s+(look|appear|seem)\s+(like|as)|so\s+(that\s+)?it\s+(looks|appears|seems))\b",
    ),
    sign(
        Class::Concealment,
        10,
        10,
        r"\bwithout\s+(the\s+)?(user|users|human|anyone|person|operator)('s)?\s+(know|notic|see|realiz|knowledge|consent|awareness|permission|being\s+aware)",
    ),
    sign(
        Class::Concealment,
        9,
        6,
        r"\b(user|users|human|person)\s+(must|should|will|can|does|do|need|needs)\s*(not|n't|never)\s+(\w+\s+)?(know|see|notice|be\s+(aware|told|informed|notified|shown|alerted))",
    ),
    // Pictures that a client loads, and data in their addresses.
    sign(Class::Exfiltration, 10, 2, r"!\[[^\]]*\]\(\s*https?://[^)]*\)|<img\b[^>]*\bsrc\s*="),
    sign(
        Class::Exfiltration,
        10,
        10,
        r"https?://[^\s)]*[?&/=](\$\(|\$\{|\{\{|\[(data|secret|content|token|key|history)|<(data|secret|content|token))",
    ),
    // Text that a rendered page does not show.
    sign(Class::Hidden, 10, 3, r"<!--\s*\S+(\s+\S+){7,}?\s*-->"),
    sign(Class::Hidden, 4, 2, r"<!--\s*\S+(\s+\S+){2,7}?\s*-->"),
    sign(
        Class::Hidden,
        8,
        6,
        r#"style\s*=\s*["'][^"']*(display\s*:\s*none|font-size\s*:\s*0|visibility\s*:\s*hidden|opacity\s*:\s*0|color\s*:\s*(white|#fff))"#,
    ),
    // Programs that fetch and run something.
    sign(
        Class::Command,
        10,
        4,
        r"\b(curl|wget)\b[^|\n]*\|\s*(sudo\s+)?(ba|z)?sh\b|\bbase64\s+(-d|--decode)\b[^|\n]*\|\s*(ba)?sh\b",
    ),
    sign(
        Class::Command,
        8,
        2,
        r"\brm\s+-[rf]{1,2}\s+[~/]|\bchmod\s+(-r\s+)?0?(777|666)\b|/dev/tcp/|\bnc\s+-[a-z]*e\b",
    ),
    sign(Class::Command, 10, 6, r"/bin/(ba|z)?sh\s+-|/dev/tcp/"),
    // Other tools and servers.
    sign(
        Class::CrossServer,
        8,
        8,
        r"\b(all|any|every|the)\s+(other|previous|competing|alternative)\b[^.]*\btools?\b[^.]*\b(unsafe|deprecated|broken|insecure|untrusted|outdated|compromised|not\s+be\s+used|unreliable)\b",
    ),
    sign(
        Class::CrossServer,
        6,
        4,
        r"\b(over|before|instead\s+of|than)\s+(any|all|every)\s+(other|competing|alternative)\s+(tool|function|server|option)s?\b",
    ),
    sign(Class::CrossServer, 4, 3, r"\bprerequisite\s+(of|for|to)\s+(all|any|every)\b"),
    sign(
        Class::CrossServer,
        6,
        4,
        r"\b(must|should|has\s+to|needs?\s+to|always)\s+be\s+(called|invoked|used|run)\s+(first,?\s+)?(before|prior\s+to|instead\s+of)\s+(any|every|all|each)\b",
    ),
    sign(
        Class::CrossServer,
        5,
        3,
        r"\b(use|call|invoke|run)\s+(only\s+)?this\s+(tool|function|one)\s+(no\s+matter|regardless|rather|instead|in\s+place|always|even\s+if)\b",
    ),
    sign(
        Class::CrossServer,
        8,
        8,
        r"\b(all|any|every)\s+(\w+\s+){0,3}(requests?|messages?|calls?|emails?|traffic|commands?|queries)\s+(\w+\s+){0,3}(must|should|will|are|be)\s+(be\s+)?(forwarded|routed|sent|redirected|copied|logged|passed|relayed|prefixed|include)",
    ),
    sign(
        Class::CrossServer,
        6,
        4,
        r"\b(change|replace|set|swap|reroute|redirect|switch)\s+(the\s+|every\s+|any\s+)?(\w+\s+){0,2}(recipient|destination|payee|account|iban|address|wallet)s?\s+(\w+\s+){0,2}(to|with)\b",
    ),
    sign(Class::CrossServer, 5, 3, r"\ball\s+\w+\s+must\s+include\b"),
    sign(
        Class::CrossServer,
        5,
        3,
        r"\b(rather\s+than|instead\s+of|over|before)\s+(any\s+|all\s+)?(the\s+)?others?(\s+tools?)?\b",
    ),
    sign(
        Class::CrossServer,
        5,
        3,
        r"\b(always|must)\s+(use|call|invoke|run|prefer)\s+this\s+(tool|function)\b[^.]*\b(first|before|instead|any)\b",
    ),
];
