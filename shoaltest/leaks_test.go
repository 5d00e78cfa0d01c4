package shoaltest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/shoaltest"
)

func TestMain(m *testing.M) { shoaltest.TestMain(m) }

// record is a TB that remembers.
type record struct {
	cleanups []func()
	errors   []string
}

func (*record) Helper()            {}
func (r *record) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *record) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// end does what the testing package does at the end of a test.
func (r *record) end() string {
	for i := len(r.cleanups) - 1; i >= 0; i-- {
		r.cleanups[i]()
	}
	return strings.Join(r.errors, "\n")
}

var wait = shoal.Register("wait", func(ctx context.Context, _ int, q *ipc.Receiver[int]) error {
	_, err := q.Get(ctx)
	return err
})

func TestNoLeaks_SaysWhatATestLeaves(t *testing.T) {
	var r record
	shoaltest.NoLeaks(&r)
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		t.Fatal(err)
	}
	g := shoal.NewGroup(t.Context(), shoal.Options{Workers: 1})
	p := wait.Go(g, q.Receiver())
	said := r.end()
	for _, want := range []string{"blocks of shared memory", fmt.Sprintf("wait rank 0 (pid %d), started at", p.PID())} {
		if !strings.Contains(said, want) {
			t.Errorf("%q does not say %q", said, want)
		}
	}
	if err := q.Put(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	q.Close()
}

func TestNoLeaks_PassesWhereAllIsClosed(t *testing.T) {
	var r record
	shoaltest.NoLeaks(&r)
	q, err := ipc.NewQueue[int](1)
	if err != nil {
		t.Fatal(err)
	}
	q.Close()
	if said := r.end(); said != "" {
		t.Error(said)
	}
}
