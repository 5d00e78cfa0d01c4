// Package timeline reads files of package trace, for tests and for pictures of traces.
//
//	l, err := timeline.Read("run.json")
//	for _, t := range l.Tracks { … }
//
// It must not be used for traces of other programs: their spans may overlap without nesting, which
// is an error here.
package timeline
