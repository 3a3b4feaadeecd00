// client HOST PORT TEXT: have a board's role work on TEXT; its result goes to standard output.
use std::io::{Error, Read, Result, Write};
use std::net::TcpStream;

fn ask(address: &str, operand: &[u8]) -> Result<Vec<u8>> {
    let mut board = TcpStream::connect(address)?;

    // A data message: type, 3 zero bytes, size of what follows, ID, operand.
    let mut message = vec![3, 0, 0, 0];
    message.extend((4 + operand.len() as u32).to_le_bytes());
    message.extend(1u32.to_le_bytes());
    message.extend(operand);
    board.write_all(&message)?;

    let mut head = [0; 8];
    board.read_exact(&mut head)?;
    let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    let mut payload = vec![0; size as usize];
    board.read_exact(&mut payload)?;
    if head[0] == 2 {
        // A refusal: status, 3 zero bytes, ID.
        return Err(Error::other(format!("refused with status {}", payload[0])));
    }
    Ok(payload.split_off(4)) // the ID comes first
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, host, port, text] = words.as_slice() else {
        eprintln!("use: client HOST PORT TEXT");
        std::process::exit(1);
    };
    let result = ask(&format!("{host}:{port}"), text.as_bytes())
        .and_then(|result| std::io::stdout().write_all(&result));
    if let Err(error) = result {
        eprintln!("client: {error}");
        std::process::exit(1);
    }
}
