// Package trace writes what the processes of a program do, and when, to one file that Perfetto
// (https://ui.perfetto.dev) and chrome://tracing show: a track for each goroutine of interest, and
// on it a span for each thing that was done.
//
//	t, err := trace.Create("run.json") // in the program's first process
//	work.Go(g, job{Trace: t})          // a worker has the same *Trace
//
//	track := t.Track("train") // in any of them
//	begin := track.Now()
//	loss := forward(batch)
//	track.Span("forward", begin, track.Now())
//
// The file is valid JSON at any moment, also if any of the processes is killed. All spans are on
// one clock. A nil *Trace and a nil *Track do nothing, so a program without a trace pays for a
// comparison.
//
// The trap: a worker that is killed takes the spans of its last tenth of a second along. One that
// ends calls Flush or Close before.
package trace
