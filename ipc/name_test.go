package ipc_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestMemory_ByName(t *testing.T) {
	each(t, func(t *testing.T, _ *arena.Domain) {
		m, err := ipc.NewMemory("m", 1000)
		testutil.NoError(t, err)
		again, err := ipc.Lookup[*ipc.Memory]("m")
		testutil.NoError(t, err)
		if m.Size() != 1000 || len(again.Bytes()) != 1000 || !bytes.Equal(again.Bytes(), make([]byte, 1000)) {
			t.Errorf("%d bytes, opened %d", m.Size(), len(again.Bytes()))
		}
		copy(m.Bytes(), "hello")
		testutil.NoError(t, m.Close())
		testutil.NoError(t, m.Close())
		if string(again.Bytes()[:5]) != "hello" || m.Bytes() != nil || m.Size() != 0 {
			t.Errorf("%q after the creator closed", again.Bytes()[:5])
		}
		testutil.NoError(t, ipc.Unlink("m"))
		third, err := ipc.NewMemory("m", 8)
		testutil.NoError(t, err)
		copy(third.Bytes(), "other")
		if string(again.Bytes()[:5]) != "hello" {
			t.Errorf("a holder reads %q after the name was used again", again.Bytes()[:5])
		}
		testutil.NoError(t, errors.Join(again.Close(), third.Close(), ipc.Unlink("m")))
	})
}

func TestBind_RefusesNames(t *testing.T) {
	local(t)
	_, err := ipc.Lookup[*ipc.Memory]("m")
	testutil.ErrorIs(t, err, arena.ErrNotExist, fs.ErrNotExist)
	testutil.ErrorIs(t, ipc.Unlink("m"), arena.ErrNotExist)
	err = ipc.Bind(t.Context(), "", 5)
	testutil.ErrorIs(t, err, arena.ErrName)
	if !strings.Contains(err.Error(), "1 to 192 bytes of UTF-8") {
		t.Errorf("%v does not say what a name is", err)
	}
	_, err = ipc.NewMemory("m", -1)
	testutil.ErrorIs(t, err, ipc.ErrSize)
	_, err = ipc.NewMemory("m", 1<<40)
	testutil.ErrorIs(t, err, arena.ErrTooLarge)
	testutil.NoError(t, ipc.Bind(t.Context(), "m", 5))
	_, err = ipc.NewMemory("m", 10)
	testutil.ErrorIs(t, err, arena.ErrExist, fs.ErrExist)
	_, err = ipc.Lookup[*ipc.Memory]("m")
	testutil.ErrorIs(t, err, ipc.ErrType)
	if n, err := ipc.Lookup[int]("m"); n != 5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for _, err := range []error{
		ipc.Bind(t.Context(), "f", func() {}),
		ipc.Bind(t.Context(), "f", &struct{ F any }{func() {}}),
	} {
		if err == nil || strings.Contains(err.Error(), "named") {
			t.Errorf("a function has a name: %v", err)
		}
	}
	testutil.ErrorIs(t, ipc.Bind(t.Context(), "nil", (*ipc.Memory)(nil)), ipc.ErrNil)
	if names, err := ipc.Names(); err != nil || len(names) != 1 || names[0] != "m" {
		t.Errorf("names %q, %v", names, err)
	}
	testutil.NoError(t, ipc.Unlink("m"))
	var zero ipc.Memory
	testutil.NoError(t, zero.Close())
	testutil.ErrorIs(t, ipc.Bind(t.Context(), "m", &zero), ipc.ErrClosed)
}

// A queue whose end has a name stays open for processes that look it up.
func TestLookup_FindsAQueue(t *testing.T) {
	each(t, func(t *testing.T, _ *arena.Domain) {
		q := newQueue[string](t, 4)
		testutil.NoError(t, ipc.Bind(t.Context(), "q", q.Sender()))
		testutil.NoError(t, q.Sender().Close())
		for i := range 3 {
			s, err := ipc.Lookup[*ipc.Sender[string]]("q")
			testutil.NoError(t, err)
			testutil.NoError(t, s.Put(testutil.Context(t), fmt.Sprint(i)))
			testutil.NoError(t, s.Close())
		}
		_, err := ipc.Lookup[*ipc.Sender[int]]("q")
		testutil.ErrorIs(t, err, ipc.ErrType)
		testutil.NoError(t, ipc.Unlink("q"))
		n := 0
		for s, err := range q.All(testutil.Context(t)) {
			if testutil.NoError(t, err); s != fmt.Sprint(n) {
				t.Errorf("%q arrived", s)
			}
			n++
		}
		if n != 3 {
			t.Errorf("%d of 3 arrived", n)
		}
	})
}

func TestMemory_ThatIsForgottenIsClosed(t *testing.T) {
	d := local(t)
	m, err := ipc.NewMemory("", 100)
	testutil.NoError(t, err)
	testutil.NoError(t, ipc.Bind(t.Context(), "m", m))
	if _, err := ipc.Lookup[*ipc.Memory]("m"); err != nil {
		t.Fatal(err)
	}
	runtime.KeepAlive(m)
	m = nil
	testutil.NoError(t, ipc.Unlink("m"))
	for ctx := testutil.Context(t); d.Stats().Blocks > 0 && ctx.Err() == nil; {
		runtime.GC()
	}
}

func TestMemory_ManyMakeOneNameAndOneDoes(t *testing.T) {
	each(t, func(t *testing.T, _ *arena.Domain) {
		var wg sync.WaitGroup
		var won atomic.Int32
		for range 8 {
			wg.Go(func() {
				m, err := ipc.NewMemory("m", 10)
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, arena.ErrExist):
					if m, err = ipc.Lookup[*ipc.Memory]("m"); err != nil {
						t.Error(err)
						return
					}
				default:
					t.Error(err)
					return
				}
				m.Close()
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d of 8 have created it", won.Load())
		}
		testutil.NoError(t, ipc.Unlink("m"))
	})
}
