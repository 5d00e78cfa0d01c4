// Package timeline reads the files of package trace, for tests and for pictures of them.
//
//	l, err := timeline.Read("run.json")
//	for _, t := range l.Tracks { … }
//
// The trap: it reads no other trace than ours. Spans of others may overlap without nesting, which
// is an error here.
package timeline
