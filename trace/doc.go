// Package trace records the activities of a program's processes in one file for Perfetto
// (https://ui.perfetto.dev) and chrome://tracing.
//
//	t, err := trace.Create("run.json") // in the program's first process
//	if err != nil {
//		return err
//	}
//	defer t.Close()
//	train := t.Track("train") // in any process that was sent t
//	for range 10 {
//		begin := train.Now()
//		time.Sleep(time.Millisecond) // a training step
//		train.Span("step", begin, train.Now())
//	}
//
// Start with [Create], [Trace.Track] and [Track.Span].
//
// Each goroutine of interest has a track, and each activity on it is a span.
//
// The file is valid JSON at any moment, even if a process is killed. All spans use one clock. The
// methods of a nil *Trace and a nil *Track are no-ops, so a disabled trace costs one comparison.
//
// The trap: a killed worker loses its spans of the last tenth of a second. A worker that exits
// should call [Trace.Flush] or [Trace.Close] first.
package trace
