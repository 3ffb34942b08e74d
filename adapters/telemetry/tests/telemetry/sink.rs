//! A collector: takes what is posted over HTTP and keeps it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use capstan_telemetry::{Settings, Signal, Telemetry};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A collector on this machine.
pub(crate) struct Sink {
    address: SocketAddr,
    posts: Receiver<Post>,
}

/// Something that was posted.
pub(crate) struct Post {
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) body: Vec<u8>,
}

// === impl Sink ===

impl Sink {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, posts) = mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let sender = sender.clone();
                thread::spawn(move || take(stream.unwrap(), &sender));
            }
        });
        Self { address, posts }
    }

    /// Telemetry that goes here.
    pub(crate) fn telemetry(&self) -> Telemetry {
        Telemetry::start(&self.settings()).unwrap().unwrap()
    }

    pub(crate) fn settings(&self) -> Settings {
        let signal = |path: &str| Signal {
            endpoint: format!("http://{}{path}", self.address),
            timeout: LIMIT,
        };
        let (traces, metrics) = (Some(signal("/v1/traces")), Some(signal("/v1/metrics")));
        Settings { traces, metrics, service_named: false }
    }

    /// Everything that was posted until now.
    pub(crate) fn posts(&self) -> Vec<Post> {
        self.posts.try_iter().collect()
    }
}

fn take(stream: TcpStream, posts: &Sender<Post>) {
    let mut reader = BufReader::new(stream);
    let line = |reader: &mut BufReader<TcpStream>| {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    };
    let path = line(&mut reader).split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut length, mut kind) = (0, String::new());
    loop {
        let header = line(&mut reader);
        let Some((name, value)) = header.split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "content-type" => value.clone_into(&mut kind),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    posts.send(Post { path, kind, body }).unwrap();
    reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
}

/// The spans among what was posted.
pub(crate) fn spans(posts: &[Post]) -> Vec<Span> {
    let traces = posts.iter().filter(|post| post.path == "/v1/traces");
    let requests = traces.map(|post| ExportTraceServiceRequest::decode(&*post.body).unwrap());
    let resources = requests.flat_map(|request| request.resource_spans);
    resources.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
}

/// The metrics in the last of what was posted.
pub(crate) fn metrics(posts: &[Post]) -> Vec<Metric> {
    let post = posts.iter().rfind(|post| post.path == "/v1/metrics").unwrap();
    let request = ExportMetricsServiceRequest::decode(&*post.body).unwrap();
    let resources = request.resource_metrics.into_iter();
    resources.flat_map(|resource| resource.scope_metrics).flat_map(|scope| scope.metrics).collect()
}

/// Attributes as `name=value`, in order of their names.
pub(crate) fn told(attributes: &[KeyValue]) -> Vec<String> {
    let value = |value: &Option<AnyValue>| match value.as_ref().and_then(|v| v.value.clone()) {
        Some(any_value::Value::StringValue(text)) => text,
        other => format!("{other:?}"),
    };
    let mut told: Vec<String> =
        attributes.iter().map(|pair| format!("{}={}", pair.key, value(&pair.value))).collect();
    told.sort();
    told
}
