package sys_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
	"golang.org/x/sys/unix"
)

// bellName is one that no other test and no other run has.
func bellName(t *testing.T, n int) string {
	return fmt.Sprintf("shoal-test/%d/%s/%d", os.Getpid(), t.Name(), n)
}

func hang(t *testing.T, n int) (*sys.Bell, sys.BellAddr) {
	t.Helper()
	name := bellName(t, n)
	b := testutil.Value(sys.ListenBell(name))(t)
	t.Cleanup(func() { b.Close() })
	return b, sys.NewBellAddr(name)
}

func ringer(t *testing.T) *sys.Ringer {
	t.Helper()
	r := testutil.Value(sys.NewRinger())(t)
	t.Cleanup(func() { r.Close() })
	return r
}

// send rings a bell with a note, and listen waits for any.
func send(r *sys.Ringer, to *sys.BellAddr) error { _, err := r.Ring(to, 1); return err }

func listen(b *sys.Bell) error { _, err := b.Wait(); return err }

func TestBellReturnsEachNoteOnce(t *testing.T) {
	b, to := hang(t, 0)
	r := ringer(t)
	for _, note := range []uint64{7, 1 << 61, 7} {
		full := testutil.Value(r.Ring(&to, note))(t)
		if full {
			t.Fatal("three notes do not fit")
		}
	}
	if got := testutil.Value(b.Wait())(t); !slices.Equal(got, []uint64{7, 1 << 61}) {
		t.Errorf("notes %v, want 7 and 1<<61", got)
	}
}

// A ring that did not fit is reported, so that its note can be passed in another way. The notes
// that did fit arrive.
func TestBellThatIsFullSaysSo(t *testing.T) {
	b, to := hang(t, 0)
	r := ringer(t)
	sent := []uint64{}
	for note := uint64(1); ; note++ {
		if testutil.Value(r.Ring(&to, note))(t) {
			break
		}
		if sent = append(sent, note); note == 1<<20 {
			t.Skip("the queue of a bell has no end here")
		}
	}
	var got []uint64
	for len(got) < len(sent) {
		got = append(got, testutil.Value(b.Wait())(t)...)
	}
	if !slices.Equal(got, sent) {
		t.Errorf("notes %v, want %v", got, sent)
	}
}

// Any process may send a datagram of any length. It wakes the process, with the note 0.
func TestBellTakesAnyDatagram(t *testing.T) {
	name := bellName(t, 0)
	b, _ := hang(t, 0)
	fd := testutil.Value(unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))(t)
	defer unix.Close(fd)
	for _, text := range []string{"", "short", "longer than a note"} {
		testutil.NoError(t, unix.Sendto(fd, []byte(text), 0, &unix.SockaddrUnix{Name: "@" + name}))
		if got := testutil.Value(b.Wait())(t); !slices.Equal(got, []uint64{0}) {
			t.Errorf("the notes of %q are %v, want 0", text, got)
		}
	}
}

func TestBellWakesAWaitingGoroutine(t *testing.T) {
	a, toA := hang(t, 0)
	b, toB := hang(t, 1)
	r := ringer(t)
	within(t, "a thousand rounds", func() {
		var other sync.WaitGroup
		other.Go(func() {
			for range 1000 {
				if err := errors.Join(listen(b), send(r, &toA)); err != nil {
					t.Error(err)
				}
			}
		})
		for range 1000 {
			if err := errors.Join(send(r, &toB), listen(a)); err != nil {
				t.Error(err)
			}
		}
		other.Wait()
	})
}

func TestManyRingsEndOneWait(t *testing.T) {
	b, to := hang(t, 0)
	r := ringer(t)
	for range 2000 { // more than any queue holds
		testutil.NoError(t, send(r, &to))
	}
	if testutil.Value(sys.PendingBytes(b))(t) == 0 {
		t.Error("no ring is pending after ringing")
	}
	within(t, "the wait on a ringing bell", func() { testutil.NoError(t, listen(b)) })
	if n := testutil.Value(sys.PendingBytes(b))(t); n != 0 {
		t.Errorf("a ring of %d bytes is left over", n)
	}
}

// The send buffer of one socket holds every datagram that its receivers have not taken; sleepers
// must not be able to fill it and so silence the bell of a process that is awake.
func TestRingReachesABellThoughManySleep(t *testing.T) {
	r := ringer(t)
	for n := range 64 {
		_, to := hang(t, n)
		for range 40 {
			testutil.NoError(t, send(r, &to))
		}
	}
	awake, to := hang(t, 64)
	testutil.NoError(t, send(r, &to))
	within(t, "the wait on the last bell", func() { testutil.NoError(t, listen(awake)) })
}

func TestRingOfABellThatIsGoneIsNoError(t *testing.T) {
	r := ringer(t)
	b, to := hang(t, 0)
	testutil.NoError(t, b.Close())
	testutil.NoError(t, send(r, &to))
	never := sys.NewBellAddr(bellName(t, 1))
	testutil.NoError(t, send(r, &never))
}

func TestBellNamesAreExclusiveUntilClose(t *testing.T) {
	b, _ := hang(t, 0)
	if _, err := sys.ListenBell(bellName(t, 0)); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("second bell of a name: %v, want EADDRINUSE", err)
	}
	testutil.NoError(t, b.Close())
	again := testutil.Value(sys.ListenBell(bellName(t, 0)))(t)
	testutil.NoError(t, again.Close())
}

func TestBellNameOf107BytesIsTheLongest(t *testing.T) {
	name := bellName(t, 0)
	name += strings.Repeat("x", 107-len(name))
	b := testutil.Value(sys.ListenBell(name))(t)
	defer b.Close()
	to := sys.NewBellAddr(name)
	testutil.NoError(t, send(ringer(t), &to))
	within(t, "the wait on a long name", func() { testutil.NoError(t, listen(b)) })
	defer func() {
		if recover() == nil {
			t.Error("a name of 108 bytes was taken")
		}
	}()
	sys.NewBellAddr(name + "x")
}

func TestBellWaitEndsWhenTakenDown(t *testing.T) {
	b, _ := hang(t, 0)
	waited := make(chan error)
	go func() { waited <- listen(b) }()
	testutil.NoError(t, b.Close())
	within(t, "the wait on a bell that is taken down", func() {
		if err := <-waited; !errors.Is(err, os.ErrClosed) {
			t.Errorf("wait: %v, want os.ErrClosed", err)
		}
	})
}

func TestClosedRingerSaysSo(t *testing.T) {
	r := ringer(t)
	_, to := hang(t, 0)
	var rings sync.WaitGroup
	for range 4 {
		rings.Go(func() {
			for {
				if err := send(r, &to); err != nil {
					if !errors.Is(err, os.ErrClosed) {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	testutil.NoError(t, r.Close())
	within(t, "ringing to stop", rings.Wait)
	testutil.NoError(t, r.Close())
}

func TestRingAndWaitDoNotAllocate(t *testing.T) {
	b, to := hang(t, 0)
	r := ringer(t)
	if n := testing.AllocsPerRun(100, func() {
		r.Ring(&to, 1)
		b.Wait()
	}); n != 0 {
		t.Errorf("%v allocations a wake", n)
	}
}

func init() {
	roles["answer the bell"] = func() error {
		name, back := os.Args[1], sys.NewBellAddr(os.Args[2])
		b, err := sys.ListenBell(name)
		if err != nil {
			return err
		}
		r, err := sys.NewRinger()
		if err != nil {
			return err
		}
		fmt.Println("ready")
		for {
			if err := errors.Join(listen(b), send(r, &back)); err != nil {
				return err
			}
		}
	}
}

func TestBellWakesAnotherProcessAndVanishesWithIt(t *testing.T) {
	mine, theirs := bellName(t, 0), bellName(t, 1)
	b := testutil.Value(sys.ListenBell(mine))(t)
	defer b.Close()
	c := start(t, command("answer the bell", theirs, mine))
	r := ringer(t)
	to := sys.NewBellAddr(theirs)
	within(t, "a hundred answers", func() {
		for range 100 {
			if err := errors.Join(send(r, &to), listen(b)); err != nil {
				t.Error(err)
			}
		}
	})
	testutil.NoError(t, c.Process.Kill())
	c.Wait()
	testutil.NoError(t, send(r, &to))
	again := testutil.Value(sys.ListenBell(theirs))(t) // the name is free
	testutil.NoError(t, again.Close())
}

func BenchmarkRingAndWait(b *testing.B) {
	name := fmt.Sprintf("shoal-bench/%d", os.Getpid())
	bell, err := sys.ListenBell(name)
	if err != nil {
		b.Fatal(err)
	}
	defer bell.Close()
	r, err := sys.NewRinger()
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	to := sys.NewBellAddr(name)
	b.ReportAllocs()
	for b.Loop() {
		r.Ring(&to, 1)
		bell.Wait()
	}
}
