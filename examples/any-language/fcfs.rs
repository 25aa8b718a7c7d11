// First come, first served, for a Batsim 4 or 5, in Rust with libzmq and no crate:
//
//     rustc -O -o fcfs fcfs.rs && ./fcfs tcp://127.0.0.1:28000
//
// Fields are found by their names, which is enough for what is read here; for more, use a JSON library.
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::CString;
use std::os::raw::{c_char, c_int, c_void};

#[repr(C, align(8))]
struct Message([u8; 64]);

#[link(name = "zmq")]
extern "C" {
    fn zmq_ctx_new() -> *mut c_void;
    fn zmq_socket(context: *mut c_void, kind: c_int) -> *mut c_void;
    fn zmq_bind(socket: *mut c_void, endpoint: *const c_char) -> c_int;
    fn zmq_msg_init(message: *mut Message) -> c_int;
    fn zmq_msg_recv(message: *mut Message, socket: *mut c_void, flags: c_int) -> c_int;
    fn zmq_msg_data(message: *mut Message) -> *const u8;
    fn zmq_msg_close(message: *mut Message) -> c_int;
    fn zmq_close(socket: *mut c_void) -> c_int;
    fn zmq_ctx_term(context: *mut c_void) -> c_int;
    fn zmq_send(socket: *mut c_void, text: *const u8, size: usize, flags: c_int) -> c_int;
}

// type, begins, hosts, submitted, size, completed, ends; then a rejection, and an execution before and after its hosts
type Dialect = [&'static str; 10];
const BATSIM4: Dialect = [
    "type", "SIMULATION_BEGINS", "nb_compute_resources", "JOB_SUBMITTED", "res", "JOB_COMPLETED", "SIMULATION_ENDS",
    r#""type":"REJECT_JOB","data":{"#, r#""type":"EXECUTE_JOB","data":{"alloc":""#, r#"","#];
const BATSIM5: Dialect = [
    "event_type", "SimulationBeginsEvent", "computation_host_number", "JobSubmittedEvent", "resource_request",
    "JobCompletedEvent", "SimulationEndsEvent", r#""event_type":"RejectJobEvent","event":{"#,
    r#""event_type":"ExecuteJobEvent","event":{"allocation":{"host_allocation":""#,
    r#"","executor_placement_type":"PredefinedExecutorPlacementStrategyWrapper","executor_placement":{"strategy":"SpreadOverHostsFirst"}},"#];
const HELLO: &str = "\u{2}\0\0\0{\"now\":0.0,\"events\":[{\"timestamp\":0.0,\"event_type\":\"EDCHelloEvent\",\
    \"event\":{\"batprotocol_version\":\"1.0.0\",\"requested_simulation_features\":{}}}]}"; // 2 stands for JSON

// The value of a field: of a text what is between its quotes, or else all up to a comma or a bracket.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let key = format!("\"{name}\":");
    let value = text.split_once(&key).map_or("", |(_, rest)| rest.trim_start());
    if !value.starts_with('"') {
        return value.split([',', '}', ']']).next().unwrap();
    }
    let mut escaped = false;
    let end = value[1..].find(|letter| { let ends = letter == '"' && !escaped; escaped = letter == '\\' && !escaped; ends });
    &value[1..1 + end.unwrap_or(0)]
}

fn main() {
    let endpoint = CString::new(std::env::args().nth(1).expect("usage: fcfs ENDPOINT")).unwrap();
    let context = unsafe { zmq_ctx_new() };
    let socket = unsafe { zmq_socket(context, 4) }; // 4 is ZMQ_REP
    assert!(unsafe { zmq_bind(socket, endpoint.as_ptr()) } == 0, "cannot listen there");
    let (mut said, mut machine, mut ended) = (BATSIM4, 0, false);
    let (mut idle, mut queue, mut running) = (BTreeSet::new(), VecDeque::new(), HashMap::<String, Vec<usize>>::new());
    while !ended {
        let mut message = Message([0; 64]);
        let bytes = unsafe {
            zmq_msg_init(&mut message);
            let size = zmq_msg_recv(&mut message, socket, 0);
            assert!(size >= 0, "nothing could be received");
            let bytes = std::slice::from_raw_parts(zmq_msg_data(&mut message), size as usize).to_vec();
            zmq_msg_close(&mut message);
            bytes
        };
        if bytes.len() >= 4 && u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize == bytes.len() - 4 {
            said = BATSIM5; // it begins with the size of a text, and that text
            unsafe { zmq_send(socket, HELLO.as_ptr(), HELLO.len(), 0) };
            continue;
        }
        let request = String::from_utf8_lossy(&bytes);
        let [kind, begins, hosts, submitted, size, completed, ends, reject, execute, placed] = said;
        let now = field(&request, "now");
        let mut decisions = Vec::new();
        for event in request.split("{\"timestamp\"").skip(1) {
            let (this, id) = (field(event, kind), field(event, "job_id").to_string());
            if this == begins {
                machine = field(event, hosts).parse().unwrap();
                idle.extend(0..machine);
            } else if this == submitted {
                let wanted: usize = field(event, size).parse().unwrap();
                if wanted > machine { decisions.push(format!("{{\"timestamp\":{now},{reject}\"job_id\":\"{id}\"}}}}")) }
                else { queue.push_back((id, wanted)) }
            } else if this == completed { // however it ended
                idle.extend(running.remove(&id).unwrap());
            }
            ended |= this == ends;
        }
        while queue.front().map_or(false, |job| job.1 <= idle.len()) {
            let (id, size) = queue.pop_front().unwrap();
            let taken: Vec<usize> = idle.iter().take(size).copied().collect();
            for host in &taken { idle.remove(host); }
            let hosts = taken.iter().map(usize::to_string).collect::<Vec<_>>().join(" ");
            decisions.push(format!("{{\"timestamp\":{now},{execute}{hosts}{placed}\"job_id\":\"{id}\"}}}}"));
            running.insert(id, taken);
        }
        let reply = format!("{{\"now\":{now},\"events\":[{}]}}", decisions.join(","));
        unsafe { zmq_send(socket, reply.as_ptr(), reply.len(), 0) };
    }
    unsafe { zmq_close(socket) };
    unsafe { zmq_ctx_term(context) }; // which waits until the last reply is sent
}
