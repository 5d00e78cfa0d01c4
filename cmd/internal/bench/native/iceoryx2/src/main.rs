//! What iceoryx2 does of the rows of suite peers: two processes, each on a processor of its own.
//!
//!     shoal-peer-iceoryx2 WORK SIZE ROUNDS CPU CPU
//!
//! prints the nanoseconds that a round took: `rtt` is a sample of SIZE bytes there and one back,
//! each loaned, one byte written, sent and received, both sides polling; `msgs` is SIZE bytes one
//! way, through a buffer of 1024; `wake` is an event to and fro, with the other side asleep.

use core::time::Duration;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::publish_subscribe;
use std::error::Error;
use std::process::{Command, Stdio};
use std::time::Instant;

type Result<T> = core::result::Result<T, Box<dyn Error>>;
type Topic = publish_subscribe::PortFactory<ipc::Service, [u8], ()>;

const BUFFER: usize = 1024;
const GREETING: u8 = 1;
const MESSAGE: u8 = 2;
const PAUSE: Duration = Duration::from_micros(150);

struct Task {
    work: String,
    size: usize,
    rounds: usize,
    leader: bool,
    name: String,
}

fn main() -> Result<()> {
    set_log_level(LogLevel::Error);
    let args: Vec<String> = std::env::args().collect();
    if args.len() != 6 && args.len() != 7 {
        return Err("want WORK SIZE ROUNDS CPU CPU".into());
    }
    let leader = args.len() == 6; // the other side is told the name
    let task = Task {
        work: args[1].clone(),
        size: args[2].parse()?,
        rounds: args[3].parse()?,
        leader,
        name: if leader {
            format!("shoal/bench/{}", std::process::id())
        } else {
            args[6].clone()
        },
    };
    let mut other = None;
    if leader {
        let exe = std::env::current_exe()?;
        let args = args[1..].iter().chain([&task.name]);
        other = Some(Command::new(exe).args(args).stdout(Stdio::piped()).spawn()?);
    }
    pin(args[if leader { 4 } else { 5 }].parse()?, leader);
    let took = match task.work.as_str() {
        "rtt" => task.rtt()?,
        "msgs" => task.msgs()?,
        "wake" => task.wake()?,
        _ => return Err(format!("work {} is unknown", task.work).into()),
    };
    let Some(other) = other else {
        // What this side has let the leader sleep.
        println!("{}", if task.work == "wake" { took.as_nanos() } else { 0 });
        return Ok(());
    };
    let end = other.wait_with_output()?;
    if !end.status.success() {
        return Err(format!("the other side: {}", end.status).into());
    }
    let slept: u64 = String::from_utf8(end.stdout)?.trim().parse()?;
    let nanoseconds = took.saturating_sub(Duration::from_nanos(slept)).as_nanos();
    println!("{:.3}", nanoseconds as f64 / task.rounds as f64);
    Ok(())
}

/// pin keeps this process on a processor, and ends it with the process that has started it.
fn pin(cpu: usize, leader: bool) {
    unsafe {
        if !leader {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        }
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set);
    }
}

impl Task {
    fn topic(&self, node: &Node<ipc::Service>, direction: &str) -> Result<Topic> {
        let name = format!("{}/{direction}", self.name);
        Ok(node
            .service_builder(&name.as_str().try_into()?)
            .publish_subscribe::<[u8]>()
            .enable_safe_overflow(false)
            .subscriber_max_buffer_size(if self.work == "msgs" { BUFFER } else { 2 })
            .max_publishers(1)
            .max_subscribers(1)
            .open_or_create()?)
    }

    fn publisher(&self, t: &Topic) -> Result<Publisher<ipc::Service, [u8], ()>> {
        Ok(t.publisher_builder()
            .initial_max_slice_len(self.size)
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .create()?)
    }

    /// rtt returns how long the leader's rounds took.
    fn rtt(&self) -> Result<Duration> {
        let node = NodeBuilder::new().create::<ipc::Service>()?;
        let (there, back) = (self.topic(&node, "there")?, self.topic(&node, "back")?);
        let (out, into) = if self.leader { (&there, &back) } else { (&back, &there) };
        let (publisher, subscriber) = (self.publisher(out)?, into.subscriber_builder().create()?);
        self.meet(&publisher, &subscriber)?;
        let begin = Instant::now();
        for _ in 0..self.rounds {
            if self.leader {
                self.send(&publisher, MESSAGE)?;
                self.receive(&subscriber, &publisher)?;
            } else {
                self.receive(&subscriber, &publisher)?;
                self.send(&publisher, MESSAGE)?;
            }
        }
        self.last(begin, &there)
    }

    fn msgs(&self) -> Result<Duration> {
        let node = NodeBuilder::new().create::<ipc::Service>()?;
        let (there, back) = (self.topic(&node, "there")?, self.topic(&node, "back")?);
        let (out, into) = if self.leader { (&there, &back) } else { (&back, &there) };
        let (publisher, subscriber) = (self.publisher(out)?, into.subscriber_builder().create()?);
        self.meet(&publisher, &subscriber)?;
        let begin = Instant::now();
        if self.leader {
            for _ in 0..self.rounds {
                self.send(&publisher, MESSAGE)?;
            }
            self.receive(&subscriber, &publisher)?;
        } else {
            for _ in 0..self.rounds {
                self.receive(&subscriber, &publisher)?;
            }
            self.send(&publisher, MESSAGE)?;
        }
        self.last(begin, &there)
    }

    /// last lets the leader's time end, and the other side keep its ports until the leader has
    /// received what they sent, and dropped its own.
    fn last(&self, begin: Instant, there: &Topic) -> Result<Duration> {
        while !self.leader && there.dynamic_config().number_of_publishers() > 0 {
            std::thread::yield_now();
        }
        Ok(begin.elapsed())
    }

    fn send(&self, p: &Publisher<ipc::Service, [u8], ()>, kind: u8) -> Result<()> {
        let mut sample = p.loan_slice_uninit(self.size)?;
        sample.payload_mut()[0].write(kind);
        unsafe { sample.assume_init() }.send()?;
        Ok(())
    }

    /// receive waits for a message. Greetings that come meanwhile are answered.
    fn receive(&self, s: &Subscriber<ipc::Service, [u8], ()>, p: &Publisher<ipc::Service, [u8], ()>) -> Result<()> {
        for i in 1u32.. {
            if let Some(sample) = s.receive()? {
                assert_eq!(sample.payload().len(), self.size);
                if sample.payload()[0] == MESSAGE {
                    return Ok(());
                }
                drop(sample);
                if !self.leader {
                    self.send(p, GREETING)?;
                }
            }
            if i & 0xfff == 0 {
                std::thread::yield_now();
            }
        }
        unreachable!()
    }

    /// meet has the leader greet until the other side answers: what is sent before both ends of a
    /// connection are there is lost.
    fn meet(&self, p: &Publisher<ipc::Service, [u8], ()>, s: &Subscriber<ipc::Service, [u8], ()>) -> Result<()> {
        while self.leader && s.receive()?.is_none() {
            self.send(p, GREETING)?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn wake(&self) -> Result<Duration> {
        let node = NodeBuilder::new().create::<ipc::Service>()?;
        let event = |direction: &str| -> Result<_> {
            let name = format!("{}/{direction}", self.name);
            Ok(node.service_builder(&name.as_str().try_into()?).event().open_or_create()?)
        };
        let (there, back) = (event("there")?, event("back")?);
        let (out, into) = if self.leader { (&there, &back) } else { (&back, &there) };
        let listener = into.listener_builder().create()?;
        while out.dynamic_config().number_of_listeners() < 1 {
            std::thread::yield_now();
        }
        let notifier = out.notifier_builder().create()?;
        let mut slept = Duration::ZERO;
        let begin = Instant::now();
        for _ in 0..self.rounds {
            if !self.leader {
                listener.blocking_wait(|_| {})?;
            }
            slept += let_sleep();
            notifier.notify()?;
            if self.leader {
                listener.blocking_wait(|_| {})?;
            }
        }
        Ok(if self.leader { begin.elapsed() - slept } else { slept })
    }
}

fn let_sleep() -> Duration {
    let begin = Instant::now();
    while begin.elapsed() < PAUSE {}
    begin.elapsed()
}
