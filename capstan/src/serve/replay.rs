//! Answers one client from a recording, over our standard streams.

use std::io::Read as _;
use std::path::Path;

use capstan_app::AppError;
use capstan_app::cassette::{MAX_CASSETTE, Player};
use capstan_gateway::stdio::streams;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

/// The longest line that is read, in bytes.
const MAX_LINE: u64 = 16 * 1024 * 1024;

/// Reads a recording.
pub(crate) fn read(file: &Path) -> Result<Player, AppError> {
    let shown = file.display();
    let failed = |error: std::io::Error| AppError::not_found(format!("{shown}: {error}"));
    let mut text = String::new();
    let open = std::fs::File::open(file).map_err(failed)?;
    let limit = u64::try_from(MAX_CASSETTE).unwrap_or(u64::MAX);
    open.take(limit + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() > MAX_CASSETTE {
        return Err(AppError::usage(format!("{shown} has more than {MAX_CASSETTE} bytes")));
    }
    Player::read(&text).map_err(|error| {
        AppError::usage(format!("{shown}: {error}")).hint("`capstan record NAME` makes a recording")
    })
}

/// Answers until the client closes its side.
pub(crate) async fn serve(mut player: Player) -> std::io::Result<()> {
    let (input, mut output) = streams::standard();
    let mut input = BufReader::new(input);
    loop {
        let mut line = Vec::new();
        let read = (&mut input).take(MAX_LINE).read_until(b'\n', &mut line).await?;
        if read == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        for answer in player.answer(text) {
            output.write_all(answer.as_bytes()).await?;
            output.write_all(b"\n").await?;
        }
        output.flush().await?;
    }
}
