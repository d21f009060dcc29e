//! A local HTTP server that behaves as badly as it is told to.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What the server does with a request.
#[derive(Clone)]
pub enum Answer {
    /// The body, or the part of it that is asked for.
    Body(Vec<u8>),
    /// The same, but the connection ends after so many bytes of it.
    CutAfter(Vec<u8>, usize),
    /// The whole body, whatever range is asked for.
    IgnoreRange(Vec<u8>),
    /// Bytes without end.
    Endless,
    /// So many bytes of the body, then silence.
    Stall(Vec<u8>, usize),
    /// An error page with this status line.
    Status(&'static str),
    /// A redirection to this path.
    Redirect(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    pub path: String,
    /// First byte asked for.
    pub from: usize,
}

/// A server on a port of its own. It ends with the process.
pub struct Server {
    pub url: String,
    log: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// `answer` gets the path and how often it was asked for before.
    pub fn new(answer: impl Fn(&str, usize) -> Answer + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let (shared, answer) = (log.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, answer) = (shared.clone(), answer.clone());
                // A client that goes away is no failure of the server.
                std::thread::spawn(move || drop(serve(stream, &log, &*answer)));
            }
        });
        Server { url, log }
    }

    /// A server that is not there.
    pub fn absent(address: &str) -> Server {
        Server { url: format!("http://{address}"), log: Arc::default() }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Request>>,
    answer: &dyn Fn(&str, usize) -> Answer,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut path, mut range) = (String::new(), None);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if path.is_empty() {
            path = line.split(' ').nth(1).unwrap_or("").to_owned();
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            range = value.split('-').next().and_then(|n| n.parse::<usize>().ok());
        }
    }
    let before = {
        let mut log = log.lock().unwrap();
        let before = log.iter().filter(|r| r.path == path).count();
        log.push(Request { path: path.clone(), from: range.unwrap_or(0) });
        before
    };
    match answer(&path, before) {
        Answer::Body(body) => send(&mut stream, &body, range, usize::MAX),
        Answer::CutAfter(body, count) => send(&mut stream, &body, range, count),
        Answer::IgnoreRange(body) => send(&mut stream, &body, None, usize::MAX),
        Answer::Stall(body, count) => {
            send(&mut stream, &body, range, count)?;
            std::thread::sleep(Duration::from_secs(60));
            Ok(())
        }
        Answer::Endless => {
            write!(stream, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            loop {
                stream.write_all(&[b'x'; 1 << 16])?;
            }
        }
        Answer::Status(status) => write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nsad\n"
        ),
        Answer::Redirect(to) => write!(
            stream,
            "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ),
    }
}

fn send(
    stream: &mut TcpStream,
    body: &[u8],
    range: Option<usize>,
    count: usize,
) -> std::io::Result<()> {
    let total = body.len();
    let (status, body) = match range {
        Some(from) if from >= total => {
            return write!(
                stream,
                "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{total}\r\n\
                 Content-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
        Some(from) => {
            let line =
                format!("206 Partial Content\r\nContent-Range: bytes {from}-{}/{total}", total - 1);
            (line, &body[from..])
        }
        None => ("200 OK".to_owned(), body),
    };
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(&body[..length.min(count)])
}
