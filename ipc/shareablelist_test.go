package ipc_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

func values(l *ipc.ShareableList) (all []any) {
	for _, v := range l.All() {
		all = append(all, v)
	}
	return all
}

func TestShareableList_IsPythons(t *testing.T) {
	each(t, func(t *testing.T, _ *arena.Domain) {
		l, err := ipc.NewShareableList("howdy", []byte("HoWdY\x00\x00"), -273.154, 100, nil, true, 42,
			uint8(7), float32(0.5), "")
		testutil.NoError(t, err)
		testutil.NoError(t, ipc.Bind(t.Context(), "list", l))
		again, err := ipc.Lookup[*ipc.ShareableList]("list")
		testutil.NoError(t, err)
		want := []any{"howdy", []byte("HoWdY\x00\x00"), -273.154, 100, nil, true, 42, 7, 0.5, ""}
		if got := values(again); !reflect.DeepEqual(got, want) {
			t.Errorf("%#v", got)
		}
		testutil.NoError(t, l.Set(0, "8 bytes."))
		testutil.NoError(t, l.Set(2, "now text"))
		testutil.NoError(t, l.Set(3, 42))
		testutil.NoError(t, l.Set(4, math.Inf(1)))
		testutil.NoError(t, l.Set(5, nil))
		testutil.NoError(t, l.Set(9, false))
		want = []any{"8 bytes.", []byte("HoWdY\x00\x00"), "now text", 42, math.Inf(1), nil, 42, 7, 0.5, false}
		if got := values(again); !reflect.DeepEqual(got, want) {
			t.Errorf("%#v", got)
		}
		if n, i, no := again.Count(42), again.Index(42), again.Index("none"); n != 2 || i != 3 || no != -1 {
			t.Errorf("count %d, index %d, %d", n, i, no)
		}
		for i, v := range map[int]any{0: "9 bytes..", 1: []byte("9 bytes.."), 3: "9 bytes.."} {
			testutil.ErrorIs(t, l.Set(i, v), ipc.ErrSize)
		}
		testutil.ErrorIs(t, l.Set(6, uint64(math.MaxUint64)), ipc.ErrSize)
		testutil.ErrorIs(t, l.Set(10, 1), ipc.ErrIndex)
		testutil.ErrorIs(t, l.Set(-11, 1), ipc.ErrIndex)
		testutil.ErrorIs(t, l.Set(0, struct{}{}), ipc.ErrType)
		if got := values(again); !reflect.DeepEqual(got, want) {
			t.Errorf("refused and changed: %#v", got)
		}
		_, err = ipc.NewShareableList(1, func() {})
		testutil.ErrorIs(t, err, ipc.ErrType)
		testutil.NoError(t, errors.Join(l.Close(), l.Close(), again.Close(), ipc.Unlink("list")))
		_, err = l.At(0)
		testutil.ErrorIs(t, err, ipc.ErrClosed)
		testutil.ErrorIs(t, l.Set(0, 1), ipc.ErrClosed)
		testutil.ErrorIs(t, ipc.Bind(t.Context(), "list", l), ipc.ErrClosed)
		if l.Len() != 0 || values(l) != nil {
			t.Error("a closed list has elements")
		}
	})
}

// What another process has written into a list's memory is not believed.
func TestShareableList_OfNonsenseIsRefused(t *testing.T) {
	local(t)
	plain, err := ipc.NewMemory("", 4)
	testutil.NoError(t, err)
	testutil.NoError(t, ipc.Bind(t.Context(), "plain", plain))
	_, err = ipc.Lookup[*ipc.ShareableList]("plain")
	testutil.ErrorIs(t, err, ipc.ErrType)
	l, err := ipc.NewShareableList(1, 2, 3)
	testutil.NoError(t, err)
	b := listMemory(t, l).Bytes()
	for i := range b {
		old := b[i]
		for _, x := range []byte{0, 1, 7, 0x80, 0xff} {
			b[i] = x
			values(l)
			for k := range 4 {
				l.At(k)
				l.Set(k, "text")
			}
		}
		b[i] = old
	}
	testutil.NoError(t, errors.Join(l.Close(), plain.Close(), ipc.Unlink("plain")))
}

// A process that dies before its Set is over leaves the old value.
func TestShareableList_ElementIsWholeAfterItsWriterDied(t *testing.T) {
	local(t)
	values := []any{"sixteen bytes ..", "a", 1, nil, []byte("bytes"), true, 0.5, ""}
	for _, before := range values {
		for _, after := range values {
			l, err := ipc.NewShareableList(values[0])
			testutil.NoError(t, err)
			for range 3 {
				testutil.NoError(t, l.Set(0, before))
				testutil.NoError(t, ipc.DieInSet(l, 0, after))
				if got, err := l.At(0); err != nil || !reflect.DeepEqual(got, before) {
					t.Errorf("%#v is %#v, %v after a Set to %#v that did not end", before, got, err, after)
				}
				testutil.NoError(t, l.Set(0, after))
				if got, err := l.At(0); err != nil || !reflect.DeepEqual(got, after) {
					t.Errorf("%#v is %#v, %v", after, got, err)
				}
			}
			testutil.NoError(t, l.Close())
		}
	}
}
