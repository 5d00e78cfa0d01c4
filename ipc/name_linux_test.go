package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// first tries to be the one that creates.
var first = newRole("first", func(ctx context.Context, won *ipc.Sender[bool]) error {
	defer won.Close()
	m, err := ipc.NewMemory("once", 64)
	if err != nil && !errors.Is(err, arena.ErrExist) {
		return err
	}
	won.Put(ctx, err == nil)
	if err != nil {
		return nil
	}
	copy(m.Bytes(), "first")
	<-ctx.Done() // until it is killed
	return nil
})

func TestMemory_OutlivesItsMaker(t *testing.T) {
	d := shared(t)
	won := newQueue[bool](t, 8)
	var cmds []func()
	for range 3 {
		c := first.start(t, d, won.Sender())
		cmds = append(cmds, func() { c.Process.Kill(); c.Wait() })
	}
	testutil.NoError(t, won.Sender().Close())
	winners := 0
	for range 3 {
		w, err := won.Get(testutil.Context(t))
		testutil.NoError(t, err)
		if w {
			winners++
		}
	}
	m, err := ipc.Lookup[*ipc.Memory]("once")
	testutil.NoError(t, err)
	testutil.Eventually(t, func() bool { return string(m.Bytes()[:5]) == "first" }, "the winner writes nothing")
	for _, kill := range cmds {
		kill()
	}
	if again, err := ipc.Lookup[*ipc.Memory]("once"); err != nil || winners != 1 ||
		string(again.Bytes()[:5]) != "first" {
		t.Errorf("%d created it, after their death: %v", winners, err)
	} else {
		testutil.NoError(t, again.Close())
	}
	testutil.NoError(t, errors.Join(m.Close(), ipc.Unlink("once")))
}

// An invitation is what a stranger is told.
type invitation struct {
	Addr  string
	Token arena.Token
}

// stranger joins by the socket, as a process that has inherited nothing does, and changes what it
// finds under a name.
var stranger = newRole("stranger", func(ctx context.Context, i invitation) error {
	d, err := arena.Join(ctx, i.Addr, i.Token)
	if err != nil {
		return err
	}
	inherited, err := arena.Default()
	arena.SetDefault(d)
	defer arena.SetDefault(inherited)
	m, err1 := ipc.Lookup[*ipc.Memory]("raw")
	q, err2 := ipc.Lookup[*ipc.Sender[string]]("answers")
	if err := errors.Join(err, err1, err2); err != nil {
		return err
	}
	copy(m.Bytes(), "written")
	mine, err := ipc.NewMemory("mine", 8)
	if err != nil {
		return err
	}
	copy(mine.Bytes(), "left")
	return errors.Join(q.Put(ctx, string(m.Bytes()[8:13])), mine.Close(), m.Close(), q.Close(), d.Close())
})

func TestLookup_StrangersShareByName(t *testing.T) {
	d := shared(t)
	l, err := d.Listen(arena.ListenOptions{})
	testutil.NoError(t, err)
	m, err := ipc.NewMemory("raw", 16)
	testutil.NoError(t, err)
	copy(m.Bytes()[8:], "for you")
	q := newQueue[string](t, 1)
	testutil.NoError(t, ipc.Bind(t.Context(), "answers", q.Sender()))
	wait(t, stranger.start(t, d, invitation{l.Addr(), l.Token()}))
	if s, err := q.Get(testutil.Context(t)); s != "for y" || err != nil {
		t.Errorf("it read %q, %v", s, err)
	}
	left, err := ipc.Lookup[*ipc.Memory]("mine")
	testutil.NoError(t, err)
	if string(m.Bytes()[:7]) != "written" || string(left.Bytes()[:4]) != "left" {
		t.Errorf("it has written %q and left %q", m.Bytes()[:7], left.Bytes())
	}
	testutil.NoError(t, errors.Join(left.Close(), m.Close(), l.Close(), ipc.Unlink("raw"), ipc.Unlink("answers"),
		ipc.Unlink("mine")))
}

// double doubles the numbers of a list in place.
var double = newRole("double", func(ctx context.Context, l *ipc.ShareableList) error {
	for i, v := range l.All() {
		if n, ok := v.(int); ok {
			if err := l.Set(i, 2*n); err != nil {
				return err
			}
		}
	}
	return l.Close()
})

func TestShareableList_InAnotherProcess(t *testing.T) {
	d := shared(t)
	l, err := ipc.NewShareableList(1, "two", 3)
	testutil.NoError(t, err)
	wait(t, double.start(t, d, l))
	if got := fmt.Sprint(values(l)); got != "[2 two 6]" {
		t.Errorf("%s", got)
	}
	testutil.NoError(t, l.Close())
}
