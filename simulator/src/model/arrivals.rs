//! When does the next transaction arrive? Open arrival processes, drawn one gap at a time.

use super::sampler::Sampler;
use super::streams::{Purpose, Stream};
use crate::arrivals::Arrivals;
use crate::law::Law;

const NS_PER_MS: f64 = 1e6;

/// An open arrival process at work.
pub(super) struct Process {
    stream: Stream,
    now_ns: f64,
    kind: Kind,
}

enum Kind {
    /// Independent gaps, none below the floor.
    Gaps { gap: Sampler },
    /// A Poisson process that is on until `on_until_ns`.
    OnOff { mean_ns: f64, on_ns: f64, off_ns: f64, on_until_ns: f64 },
    /// A Poisson process whose rate follows steps.
    Trace { step_ns: f64, rates_per_ns: Vec<f64>, step: u64 },
    /// None: clients in closed loop.
    Closed,
}

impl Process {
    pub(super) fn new(arrivals: &Arrivals, seed: u64) -> Self {
        let mut stream = Stream::new(seed, Purpose::Arrivals, 0);
        let kind = match arrivals {
            // The study floors gaps at 1 ms.
            Arrivals::LogNormal { scale_ms, sigma } => {
                Kind::Gaps { gap: Sampler::law(&Law::log_normal(*scale_ms, *sigma, 1.0)) }
            }
            Arrivals::Exponential { mean_ms } => {
                Kind::Gaps { gap: Sampler::law(&Law::Exponential { mean_ms: *mean_ms }) }
            }
            Arrivals::OnOff { mean_ms, on_ms, off_ms } => {
                let on_ns = on_ms * NS_PER_MS;
                let on_until_ns = exponential(&mut stream) * on_ns;
                Kind::OnOff { mean_ns: mean_ms * NS_PER_MS, on_ns, off_ns: off_ms * NS_PER_MS, on_until_ns }
            }
            Arrivals::Trace { step_ms, rates_per_s } => Kind::Trace {
                step_ns: step_ms * NS_PER_MS,
                rates_per_ns: rates_per_s.iter().map(|rate| rate / 1e9).collect(),
                step: 0,
            },
            // A file's rates are in a trace by now.
            Arrivals::ClosedLoop { .. } | Arrivals::TraceFile { .. } => Kind::Closed,
        };
        Self { stream, now_ns: 0.0, kind }
    }

    /// Time of the next arrival; `u64::MAX` if there is none before `end_ns`.
    #[inline]
    pub(super) fn next_ns(&mut self, end_ns: u64) -> u64 {
        let stream = &mut self.stream;
        match &mut self.kind {
            Kind::Gaps { gap } => self.now_ns += gap.draw(stream),
            Kind::Closed => return u64::MAX,
            Kind::OnOff { mean_ns, on_ns, off_ns, on_until_ns } => {
                self.now_ns += exponential(stream) * *mean_ns;
                // What reaches past the burst goes on in the next: the process has no memory.
                while self.now_ns > *on_until_ns && *on_until_ns < end_ns as f64 {
                    let pause_ns = exponential(stream) * *off_ns;
                    self.now_ns += pause_ns;
                    *on_until_ns += pause_ns + exponential(stream) * *on_ns;
                }
            }
            Kind::Trace { step_ns, rates_per_ns, step } => {
                // Expected arrivals until the next one, used up step by step.
                let mut left = exponential(stream);
                loop {
                    let rate = rates_per_ns[(*step % rates_per_ns.len() as u64) as usize];
                    let step_end_ns = (*step + 1) as f64 * *step_ns;
                    if rate * (step_end_ns - self.now_ns) >= left {
                        self.now_ns += left / rate;
                        break;
                    }
                    left -= rate * (step_end_ns - self.now_ns);
                    self.now_ns = step_end_ns;
                    *step += 1;
                    if self.now_ns >= end_ns as f64 {
                        break;
                    }
                }
            }
        }
        if self.now_ns < end_ns as f64 { self.now_ns as u64 } else { u64::MAX }
    }
}

/// Exponential with mean 1.
fn exponential(stream: &mut Stream) -> f64 {
    -stream.unit().ln()
}
