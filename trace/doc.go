// Package trace records the activities of a program's processes in one file for Perfetto
// (https://ui.perfetto.dev) and chrome://tracing. Each goroutine of interest has a track, and each
// activity on it is a span.
//
//	t, err := trace.Create("run.json") // in the program's first process
//	work.Go(g, job{Trace: t})          // a worker has the same *Trace
//
//	track := t.Track("train") // in any of them
//	begin := track.Now()
//	loss := forward(batch)
//	track.Span("forward", begin, track.Now())
//
// The file is valid JSON at any moment, even if a process is killed. All spans use one clock. The
// methods of a nil *Trace and a nil *Track are no-ops, so a disabled trace costs one comparison.
//
// The trap: a killed worker loses its spans of the last tenth of a second. A worker that exits
// should call [Trace.Flush] or [Trace.Close] first.
package trace
