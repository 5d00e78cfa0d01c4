package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Run measures the selected suites and writes their rows. It starts processes, so the program must
// have called [shoal.Main]. A missed target is a result and not an error. Errors wrap [ErrSuite] or
// [ErrPeer] or come from a measurement; if ctx is done, Run returns its cause.
func Run(ctx context.Context, opts Options) (err error) {
	defer func() {
		if ctx.Err() != nil && errors.Is(err, context.Canceled) { // the other errors are consequences
			err = context.Cause(ctx)
		}
	}()
	chosen, err := opts.selectSuites()
	if err != nil {
		return err
	}
	out, log := writerOrDiscard(opts.Out), writerOrDiscard(opts.Log)
	h, err := newEnvironment(opts.Quick)
	if err != nil {
		return err
	}
	bar := newProgress(log)
	defer bar.clearLine()
	h.step = bar.showStep
	h.note = func(format string, values ...any) {
		bar.clearLine()
		fmt.Fprintf(log, format+"\n", values...)
	}
	s := &session{quick: opts.Quick, step: bar.showStep, lull: lull}
	defer func() { err = errors.Join(err, s.peer.close()) }()
	for i, suite := range chosen {
		if err := s.startPeer(ctx, opts, suite); err != nil {
			return err
		}
		if i == 0 {
			bar.clearLine()
			s.emit = rowWriter(out, log, opts.JSON, h.describeRun(s.peer), bar)
		}
		for _, setUp := range suite.groups {
			if err := s.runGroup(ctx, suite.Name, h, setUp); err != nil {
				return err
			}
		}
		if err := s.emitSum(suite); err != nil {
			return err
		}
	}
	return nil
}

// startPeer starts the peer for a suite unless it is already running or not needed, and closes
// the peer of another script. A suite without a script has no peer: s.peer is then nil.
func (s *session) startPeer(ctx context.Context, opts Options, suite Suite) (err error) {
	if opts.Against == "" && suite.partner == nil || s.peer != nil && s.peer.script == suite.peer {
		return nil
	}
	err = s.peer.close()
	if s.peer = nil; err != nil || suite.peer == "" {
		return err
	}
	s.step("start torch")
	s.peer, err = startPeer(ctx, opts, suite)
	return err
}

func (s *session) runGroup(ctx context.Context, suite string, h *environment,
	setUp func(context.Context, *environment) (group, error)) (err error) {
	g, err := setUp(ctx, h)
	if err != nil {
		return fmt.Errorf("set up %s: %w", suite, err)
	}
	if g.close != nil {
		defer func() { err = errors.Join(err, g.close()) }()
	}
	if reason, ok := s.peer.missing(g.needs); ok {
		h.note("without %s: %s", g.needs, reason)
		return nil
	}
	return s.measure(ctx, suite, g)
}

// emitSum emits the row that a suite computes from its other rows, if it has one.
func (s *session) emitSum(suite Suite) error {
	if suite.sum == nil {
		return nil
	}
	r := suite.sum(slices.DeleteFunc(slices.Clone(s.before), func(r Result) bool { return r.Suite != suite.Name }))
	if r.Name == "" {
		return nil
	}
	r.Suite = suite.Name
	return s.emit(r)
}

// selectSuites returns the selected suites. The error wraps [ErrPeer] for an unknown peer and
// [ErrSuite] for an unknown suite.
func (o Options) selectSuites() ([]Suite, error) {
	if o.Against != "" && o.Against != "torch" {
		return nil, fmt.Errorf("%w: unknown peer %q, want torch", ErrPeer, o.Against)
	}
	all := append(Suites(), o.More...)
	if o.All {
		return slices.DeleteFunc(all, func(s Suite) bool { return s.partner != nil && o.Against == "" }), nil
	}
	if len(o.Suites) == 0 {
		return all[:1], nil
	}
	var chosen []Suite
	for _, name := range o.Suites {
		i := slices.IndexFunc(all, func(s Suite) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: %q: want one of %s", ErrSuite, name, suiteNames(all))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func suiteNames(suites []Suite) string {
	var list []string
	for _, s := range suites {
		list = append(list, s.Name)
	}
	return strings.Join(list, ", ")
}

func writerOrDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}
