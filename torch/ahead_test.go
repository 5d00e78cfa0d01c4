package torch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// sender is an ahead with the other end of its socket.
func sender(t testing.TB) (*ahead, *sys.Conn) {
	t.Helper()
	a, theirs, err := newAhead(testKey)
	if err != nil {
		t.Fatal(err)
	}
	c, err := sys.SocketConn(theirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return a, c
}

// sendAhead sends a file that has its number for content, as ahead.py does.
func sendAhead(t testing.TB, c *sys.Conn, key int64) {
	t.Helper()
	f, err := sys.Memfd("ahead")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fmt.Fprint(f, key)
	if err := sys.SendFiles(c, binary.BigEndian.AppendUint64(nil, uint64(key)), f); err != nil {
		t.Fatal(err)
	}
}

// wantAhead wants the file of a key, by the sharer's protocol or without.
func wantAhead(t testing.TB, a *ahead, key int64) {
	t.Helper()
	f, err := fetchDescriptor(a.sharer.listener.Addr(), key, testKey)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := make([]byte, 30)
	n, _ := f.ReadAt(text, 0)
	if string(text[:n]) != fmt.Sprint(key) {
		t.Errorf("descriptor %d is that of %s", key, text[:n])
	}
}

func wantGone(t testing.TB, a *ahead, key int64) {
	t.Helper()
	if _, err := fetchDescriptor(a.sharer.listener.Addr(), key, testKey); !errors.Is(err, ErrGone) {
		t.Errorf("descriptor %d: %v", key, err)
	}
}

// TestAhead_TakesDescriptorsInAnyOrder takes descriptors once each, before and after their process
// has ended.
func TestAhead_TakesDescriptorsInAnyOrder(t *testing.T) {
	a, c := sender(t)
	before := openFiles(t)
	for i := range int64(5) {
		sendAhead(t, c, a.first+i)
	}
	for _, i := range []int64{3, 0} {
		wantAhead(t, a, a.first+i)
		wantGone(t, a, a.first+i)
	}
	wantGone(t, a, a.first+5)
	sendAhead(t, c, a.first+6)
	a.readRemaining()
	for _, i := range []int64{6, 1, 2, 4} {
		wantAhead(t, a, a.first+i)
		wantGone(t, a, a.first+i)
	}
	if left := a.sharer.ahead[a.first]; left != nil {
		t.Errorf("a process that has nothing left is known: %+v", left)
	}
	if after := openFiles(t); after >= before+1 { // the socket is closed
		t.Errorf("%d descriptors were open, and %d are", before, after)
	}
}

// TestAhead_IsGivenToOthers lets another process, for which this one stands, fetch a descriptor
// that was sent ahead.
func TestAhead_IsGivenToOthers(t *testing.T) {
	a, c := sender(t)
	defer a.readRemaining()
	sendAhead(t, c, a.first)
	sendAhead(t, c, a.first+1)
	for _, key := range []int64{a.first + 1, a.first} {
		s, err := sys.Dial(testContext(t), a.sharer.listener.Addr())
		if err != nil {
			t.Fatal(err)
		}
		f, err := askSharer(s, key, testKey)
		s.Close()
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		wantGone(t, a, key)
	}
	testutil.Eventually(t, func() bool { files, _ := inFlightDescriptors(); return files == 0 },
		"waited in vain for nothing to be promised")
}

// TestAhead_IsBounded sends descriptors that no received message names.
func TestAhead_IsBounded(t *testing.T) {
	a, c := sender(t)
	before := openFiles(t)
	last := a.first
	for ; last < a.first+maxCame+200; last++ {
		sendAhead(t, c, last)
		if last%100 == 0 { // a queue holds some hundreds
			wantGone(t, a, a.first+aheadKeys-1)
		}
	}
	wantGone(t, a, a.first)
	wantAhead(t, a, last-1)
	if now := openFiles(t); now > before+maxCame+10 {
		t.Errorf("%d descriptors are open where %d may wait", now-before, maxCame)
	}
	a.readRemaining()
	a.closeRemaining() // the end of keepFor
	if after := openFiles(t); after > before {
		t.Errorf("%d descriptors were open, and %d are", before, after)
	}
}

// FuzzAhead sends anything, with descriptors or without, before a descriptor that a message names.
// Nothing stays open, and the descriptor is found.
func FuzzAhead(f *testing.F) {
	f.Add([]byte("12345678"), uint8(0))
	f.Add([]byte("1234567"), uint8(1))
	f.Add([]byte("123456789"), uint8(2))
	f.Add(bytes.Repeat([]byte{255}, 8), uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, files uint8) {
		if len(b) == 0 || len(b) > 1000 {
			return
		}
		a, c := sender(t)
		before := openFiles(t)
		var sent []*os.File
		for range files % 4 {
			sent = append(sent, testutil.Value(sys.Memfd("any"))(t))
		}
		if err := sys.SendFiles(c, b, sent...); err != nil {
			t.Fatal(err)
		}
		closeFiles(sent)
		sendAhead(t, c, a.first)
		if f, err := a.takeDescriptor(a.first); err == nil {
			f.Close()
		} else if len(b)%8 == 0 && files%4 < 2 {
			t.Errorf("after %d bytes: %v", len(b), err)
		}
		a.readRemaining()
		a.closeRemaining()
		if after := openFiles(t); after > before {
			t.Errorf("%d descriptors were open, and %d are", before, after)
		}
	})
}

// numberThrough receives a connection, and a number through it.
func numberThrough(t *testing.T, c *Conn) int64 {
	t.Helper()
	ctx := testContext(t)
	one, err := As[*Conn](c.Recv(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	n, err := As[int64](one.Recv(ctx))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAhead_IsPassedOn lets another process receive a message that was sent to this one: as bytes,
// and through the connection itself.
func TestAhead_IsPassedOn(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		ctx := testContext(t)
		giver := spawnPlain(t, py, "plain:give", 3)
		if n := numberThrough(t, giver.Conn); n != 0 {
			t.Errorf("message 0 has %d", n)
		}
		near, far := pair(t, "unix", Options{AuthKey: processKey()})
		taker := spawnPlain(t, py, "plain:take", far)
		raw, err := giver.Conn.RecvBytes(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := near.SendBytes(ctx, raw); err != nil {
			t.Fatal(err)
		}
		if n, err := As[int64](taker.Conn.Recv(ctx)); n != 1 || err != nil {
			t.Errorf("passed on, message 1 has %d, %v", n, err)
		}
		if err := taker.Conn.Send(ctx, giver.Conn); err != nil {
			t.Fatal(err)
		}
		through, err := As[*Conn](taker.Conn.Recv(ctx))
		if err != nil {
			t.Fatalf("through the connection, which was passed on: %v", err)
		}
		defer through.Close()
		if n, err := As[int64](through.Recv(ctx)); n != 2 || err != nil {
			t.Errorf("message 2 has %d, %v", n, err)
		}
	})
}

// TestAhead_AForkSendsAsPyTorchDoes lets a process that Python has forked send through the
// connection. The forked process keeps its descriptors itself.
func TestAhead_AForkSendsAsPyTorchDoes(t *testing.T) {
	eachPython(t, func(t *testing.T, py peerPython) {
		p := spawnPlain(t, py, "plain:give_in_fork", 3)
		for i := range int64(3) {
			if n := numberThrough(t, p.Conn); n != i {
				t.Errorf("message %d has %d", i, n)
			}
		}
		if err := p.Conn.Send(testContext(t), nil); err != nil {
			t.Fatal(err)
		}
		if err := p.Wait(testContext(t)); err != nil {
			t.Errorf("%+v", err)
		}
	})
}

// TestAhead_KeepsWhatIsTooMany sends more descriptors in one message than go ahead of it, and ends
// before the message is received.
func TestAhead_KeepsWhatIsTooMany(t *testing.T) {
	eachTorch(t, func(t *testing.T, py peerPython) {
		const n = 400
		before := openFiles(t)
		p, _ := parting(t, py, "crowd", n)
		ctx := testContext(t)
		if err := p.Wait(ctx); err != nil {
			t.Fatalf("%+v", err)
		}
		all, err := As[[]*tensor.Tensor](p.Conn.Recv(ctx))
		if err != nil || len(all) != n {
			t.Fatalf("%d tensors, %v", len(all), err)
		}
		for i, x := range all {
			if got := elements(x)[0]; got != float64(i) {
				t.Fatalf("tensor %d has %v", i, got)
			}
			x.Close()
		}
		p.Close()
		// the sharer and the poller may have opened a descriptor each
		testutil.Eventually(t, func() bool { return openFiles(t) <= before+2 },
			"waited in vain for all descriptors to be closed")
	})
}
