package torch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shoal-mp/shoal/encoding/python"
	"github.com/shoal-mp/shoal/internal/pickle"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// TestSharer_GivesADescriptorOnce wants an error if a message is read a second time, and no fault.
func TestSharer_GivesADescriptorOnce(t *testing.T) {
	a, b := pair(t, "unix", Options{AuthKey: testKey, Strategy: FileDescriptor})
	ctx := testContext(t)
	x := tensor.New(tensor.Float32, 2)
	if err := a.Send(ctx, x); err != nil {
		t.Fatal(err)
	}
	raw, err := b.RecvBytes(ctx)
	if err != nil {
		t.Fatal(err)
	}
	v, err := b.importer().unmarshal(raw)
	if err != nil {
		t.Fatal(err)
	}
	defer CloseAll(v)
	if _, err := b.importer().unmarshal(raw); !errors.Is(err, ErrGone) {
		t.Errorf("the second time: %v", err)
	}
}

// TestSharer_EndsWhileItIsAsked wants ErrGone if a sender ends at any point of handing a descriptor
// over.
func TestSharer_EndsWhileItIsAsked(t *testing.T) {
	for name, serve := range map[string]func(c *sys.Conn){
		"at once":         func(*sys.Conn) {},
		"with unread":     func(c *sys.Conn) { _ = writeFrame(c, append([]byte(challenge), newChallenge()...)) },
		"after handshake": func(c *sys.Conn) { _ = authServer(c, testKey) },
	} {
		l := testutil.Value(sys.Listen(abstractName()))(t)
		go sys.Accept(l.Accept, func(c *sys.Conn) { serve(c); c.Close() })
		for range 20 { // the order of goroutines decides which bytes have come by the end
			if _, err := fetchDescriptor(l.Addr(), 1, testKey); !errors.Is(err, ErrGone) {
				t.Errorf("%s: %v", name, err)
			}
		}
		l.Close()
	}
}

// TestSharer_ServesBesideAStalledClient serves another client meanwhile, and keeps no descriptor of
// a client that has left.
func TestSharer_ServesBesideAStalledClient(t *testing.T) {
	s, err := sharerFor(testKey)
	if err != nil {
		t.Fatal(err)
	}
	stalled, err := sys.Dial(t.Context(), s.listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer stalled.Close()
	f, err := sys.Memfd("given")
	if err != nil {
		t.Fatal(err)
	}
	got, err := fetchDescriptor(s.listener.Addr(), s.addDescriptor(f), testKey)
	if err != nil {
		t.Fatal(err)
	}
	got.Close()
	if _, err := fetchDescriptor(s.listener.Addr(), 1<<40, testKey); !errors.Is(err, ErrGone) {
		t.Errorf("a key that was never given: %v", err)
	}
	if _, err := fetchDescriptor(s.listener.Addr(), 1, []byte("other")); !errors.Is(err, ErrAuth) {
		t.Errorf("another authkey: %v", err)
	}
}

// TestSharer_WaitsForAcknowledgement keeps the connection of a receiver open until the receiver
// says that it has the descriptor. Python 3.14 needs that.
func TestSharer_WaitsForAcknowledgement(t *testing.T) {
	s, err := sharerFor(testKey)
	if err != nil {
		t.Fatal(err)
	}
	f, err := sys.Memfd("given")
	if err != nil {
		t.Fatal(err)
	}
	key := s.addDescriptor(f)
	c, err := sys.Dial(t.Context(), s.listener.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	request, _ := pickle.Marshal(python.Tuple{key, 1}, 2)
	if err := errors.Join(authClient(c, testKey), writeFrame(c, request)); err != nil {
		t.Fatal(err)
	}
	_, files, err := sys.RecvFiles(c, make([]byte, 1), 1)
	if err != nil {
		t.Fatal(err)
	}
	files[0].Close()
	c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("before the acknowledgement: %v", err)
	}
	c.SetReadDeadline(time.Time{})
	if _, err := c.Write([]byte{ackByte}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after it: %v", err)
	}
}

// TestSharer_PromisesEnd keeps a promised descriptor for ten minutes, and then closes it.
func TestSharer_PromisesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &sharer{waiting: map[int64]*waiting{}}
		early, late := memfile(t), memfile(t)
		first, second := s.addDescriptor(early), s.addDescriptor(late)
		time.Sleep(keepFor - time.Second)
		if f, ok := s.takeDescriptor(first); !ok || f != early {
			t.Fatal("a descriptor was gone before its time")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if _, ok := s.takeDescriptor(second); ok {
			t.Error("a descriptor that nobody fetched is kept for ever")
		}
		if _, err := late.Stat(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("it is not closed: %v", err)
		}
		if _, err := early.Stat(); err != nil {
			t.Errorf("what was fetched is closed: %v", err)
		}
	})
}

func memfile(t *testing.T) *os.File {
	t.Helper()
	f, err := sys.Memfd("given")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestSharer_WaitsForASmallBacklog fetches from a listener with a backlog of one from many
// goroutines at once. Python's listener up to 3.12 has such a backlog.
func TestSharer_WaitsForASmallBacklog(t *testing.T) {
	s, err := sharerFor(testKey)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 32 {
		f, err := sys.Memfd("given")
		if err != nil {
			t.Fatal(err)
		}
		key := s.addDescriptor(f)
		wg.Go(func() {
			got, err := fetchDescriptor(s.listener.Addr(), key, testKey)
			if err != nil {
				t.Error(err)
				return
			}
			got.Close()
		})
	}
	wg.Wait()
}

// stranger is a sharer that calls do with its first caller, until the test ends.
func stranger(t *testing.T, do func(c *sys.Conn)) (addr string) {
	t.Helper()
	l := testutil.Value(sys.Listen("@shoal-torch-test/" + rand.Text()))(t)
	var served sync.WaitGroup
	served.Go(func() {
		if c, err := l.Accept(); err == nil {
			do(c)
			c.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		served.Wait()
	})
	return l.Addr()
}

// TestDetach_OfWhatCameTooEarly sends descriptors with earlier bytes than the last one. None of
// them stays open here.
func TestDetach_OfWhatCameTooEarly(t *testing.T) {
	mine, theirs := memfile(t), make(chan error, 1)
	addr := stranger(t, func(c *sys.Conn) {
		if err := authServer(c, testKey); err != nil {
			theirs <- err
			return
		}
		if _, err := nextFrame(c, authLimit); err != nil {
			theirs <- err
			return
		}
		theirs <- sys.SendFiles(c, []byte{sharedByte, sharedByte}, mine)
	})
	before := openFiles(t)
	if f, err := fetchDescriptor(addr, 1, testKey); !errors.Is(err, ErrProtocol) {
		t.Errorf("one byte too many: %v, %v", f, err)
	}
	if err := <-theirs; err != nil {
		t.Error(err)
	}
	testutil.Eventually(t, func() bool { return openFiles(t) <= before }, "waited in vain for what came to be closed")
}

// TestDetach_Acknowledges says that it has the descriptor. Without that a sharer of Python 3.14
// complains.
func TestDetach_Acknowledges(t *testing.T) {
	mine, said := memfile(t), make(chan error, 1)
	addr := stranger(t, func(c *sys.Conn) {
		err := authServer(c, testKey)
		if err == nil {
			_, err = nextFrame(c, authLimit)
		}
		if err == nil {
			err = sys.SendFiles(c, []byte{sharedByte}, mine)
		}
		b := make([]byte, 1)
		if err == nil {
			_, err = io.ReadFull(c, b)
		}
		if err == nil && b[0] != ackByte {
			err = fmt.Errorf("it said %q", b)
		}
		said <- err
	})
	f := testutil.Value(fetchDescriptor(addr, 1, testKey))(t)
	defer f.Close()
	if err := <-said; err != nil {
		t.Error(err)
	}
}
