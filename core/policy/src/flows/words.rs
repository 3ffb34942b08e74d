//! Words in names of tools and servers that tell where data comes from and where it goes.

use crate::effect::WordList;

/// The web, whatever is done with it.
pub(super) static WEB: WordList = WordList::new(
    "fetch http https url urls web webpage website websites browse browser browsing navigate crawl \
    crawler scrape scraper rss feed feeds html sitemap",
);

/// Content that strangers write.
pub(super) static STRANGERS: WordList = WordList::new(
    "page pages article articles news wiki wikipedia internet online reddit hackernews twitter tweet \
    tweets youtube transcript transcripts arxiv pubmed issue issues pull pulls pr prs comment comments \
    review reviews discussion discussions thread threads post posts email emails mail mails inbox gmail \
    outlook imap message messages slack discord telegram whatsapp teams ticket tickets form forms \
    attachment attachments download downloads podcast forum",
);

/// Data that belongs to the user.
pub(super) static PRIVATE: WordList = WordList::new(
    "file files directory directories folder folders filesystem path document documents doc docs drive \
    dropbox onedrive sharepoint note notes memory memories email emails mail mails inbox gmail outlook \
    imap calendar calendars contact contacts message messages chat chats slack teams bookmark bookmarks \
    clipboard screenshot screenshots photo photos database databases sql postgres postgresql sqlite \
    mysql mongo mongodb redis password passwords secret secrets credential credentials vault keychain \
    keyring env environment customer customers account accounts bank transaction transactions invoice \
    invoices payroll salary health patient patients medical personal private history log logs crm \
    notion obsidian journal diary wallet",
);

/// Verbs and channels that hand data to others.
pub(super) static SENDS: WordList = WordList::new(
    "send sends email mail post publish share tweet reply forward notify upload submit broadcast invite \
    comment push webhook sms dispatch transmit transfer export announce",
);

/// Things that others see as soon as they are created at a service.
pub(super) static PUBLISHED: WordList = WordList::new(
    "issue pull pr gist comment review post page message tweet ticket release event story paste link",
);

/// Verbs that create such a thing.
pub(super) static CREATES: WordList = WordList::new("create add open new make write");

/// Programs that can do everything.
pub(super) static SHELL: WordList = WordList::new(
    "shell bash sh zsh powershell terminal exec execute eval command commands cmd script",
);

/// Arguments that hold an address.
pub(super) static ADDRESS: WordList =
    WordList::new("url urls uri uris link links href endpoint website webpage domain hostname");
