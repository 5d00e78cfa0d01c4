package torch

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
)

// TestAuth_HasPythonsDigests compares with digests that Python computes for the key wire-secret.
func TestAuth_HasPythonsDigests(t *testing.T) {
	key := []byte("wire-secret")
	count := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i)
		}
		return b
	}
	modern := func(name string) []byte { return append([]byte("{"+name+"}"), count(40)...) }
	answer := func(name, mac string) string { return hex.EncodeToString([]byte("{"+name+"}")) + mac }
	for _, c := range []struct {
		message      []byte
		digest, want string
	}{
		{count(20), "", "e4646225fcc105dde130be2b7160a2b1"},
		{modern("sha256"), "", "354d1e1097dc3b45d6ec123a2efae551"},
		{modern("sha256"), "sha256", answer("sha256",
			"9fdf39b9d1b10278a1a00dc6b9338f170e56ad8af10ab2b1feba773c1f96e5f0")},
		{modern("sha384"), "sha384", answer("sha384",
			"7f147a57d98976f34ac671ee964fd80390b4060bf630e37f1b2ce2542d184b32d3b5b376b29877f1eb4702678f9c6699")},
		{modern("sha3_256"), "sha3_256", answer("sha3_256",
			"cbbd90b0eb8313cc98dd4490503a7c37566f9bf862a04025d3916bbbee34b389")},
		{modern("sha3_384"), "sha3_384", answer("sha3_384",
			"0bde5fc2139f363bd070682ce9caa199d23a4a61125aba0c051d01f2c4f4374c335616c0ce39d8951f117c9b16cfd51d")},
	} {
		response := respond(key, c.message, c.digest)
		if hex.EncodeToString(response) != c.want {
			t.Errorf("%q: %x", c.digest, response)
		}
		if !verify(key, c.message, response) {
			t.Errorf("%q: refused", c.digest)
		}
		if verify([]byte("other"), c.message, response) {
			t.Errorf("%q: accepted with another key", c.digest)
		}
	}
}

// TestAuth_RefusesBadHandshakes meets sides that do not know the key, or the protocol.
func TestAuth_RefusesBadHandshakes(t *testing.T) {
	frame := func(parts ...string) []byte {
		var b bytes.Buffer
		for _, p := range parts {
			writeFrame(&b, []byte(p))
		}
		return b.Bytes()
	}
	long := strings.Repeat("x", authLimit+1)
	for name, c := range map[string]struct {
		says []byte
		want error
	}{
		"silence":              {nil, io.ErrUnexpectedEOF},
		"no challenge":         {frame("hello"), ErrAuth},
		"an unknown digest":    {frame(challenge + "{md4}" + strings.Repeat("x", 40)), ErrAuth},
		"a failure":            {frame(challenge+strings.Repeat("x", 20), failure), ErrAuth},
		"something long":       {frame(long), ErrTooLong},
		"a wrong response":     {frame(challenge+strings.Repeat("x", 20), welcome, strings.Repeat("y", 16)), ErrAuth},
		"an empty response":    {frame(challenge+strings.Repeat("x", 20), welcome, ""), ErrAuth},
		"a negative length":    {[]byte{0xff, 0xff, 0xff, 0xfe}, ErrProtocol},
		"a length of 8 bytes":  {[]byte{0xff, 0xff, 0xff, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0}, ErrProtocol},
		"an end in the middle": {[]byte{0, 0, 0, 9, '#'}, io.ErrUnexpectedEOF},
	} {
		rw := struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(c.says), io.Discard}
		if err := authClient(rw, []byte("key")); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// pair returns both ends of a connection within this process.
func pair(t testing.TB, network string, opts Options) (accepted, dialled *Conn) {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = t.TempDir() + "/socket"
	}
	ctx := testContext(t)
	l, err := Listen(network, addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		var err error
		dialled, err = Dial(ctx, network, l.Addr(), opts)
		done <- err
	}()
	if accepted, err = l.Accept(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close(); dialled.Close() })
	return accepted, dialled
}

// TestAuth_RefusesAnotherKey wants an error on the side that dials, and Accept to pass the
// connection over.
func TestAuth_RefusesAnotherKey(t *testing.T) {
	ctx := testContext(t)
	l, err := Listen("tcp", "127.0.0.1:0", Options{AuthKey: []byte("right")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if _, err := Dial(ctx, "tcp", l.Addr(), Options{AuthKey: []byte("wrong")}); !errors.Is(err, ErrAuth) {
			t.Errorf("with the wrong key: %v", err)
		}
		silent, err := net.Dial("tcp", l.Addr())
		if err != nil {
			t.Error(err)
			return
		}
		silent.Close()
		c, err := Dial(ctx, "tcp", l.Addr(), Options{AuthKey: []byte("right")})
		if err != nil {
			t.Errorf("with the right key: %v", err)
			return
		}
		c.Send(ctx, "hello")
		c.Close()
	}()
	c, err := l.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if v, err := c.Recv(ctx); v != "hello" || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	if _, err := c.Recv(ctx); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// TestConn_EndsWithItsContext ends a wait without harm if no message has begun.
func TestConn_EndsWithItsContext(t *testing.T) {
	for _, network := range []string{"unix", "tcp"} {
		a, b := pair(t, network, Options{})
		ctx, cancel := context.WithCancelCause(testContext(t))
		why := errors.New("enough")
		go cancel(why)
		if _, err := a.Recv(ctx); !errors.Is(err, why) {
			t.Errorf("%s: %v", network, err)
		}
		if err := b.Send(testContext(t), 1); err != nil {
			t.Fatal(err)
		}
		if v, err := As[int](a.Recv(testContext(t))); v != 1 || err != nil {
			t.Errorf("%s: after it: %v, %v", network, v, err)
		}
		go a.Close()
		if _, err := a.Recv(testContext(t)); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: closed meanwhile: %v", network, err)
		}
	}
}

// TestConn_BoundsMessages crosses the sizes at which the form of a message changes, and the limits.
func TestConn_BoundsMessages(t *testing.T) {
	a, b := pair(t, "unix", Options{AuthKey: []byte("k"), MaxMessage: 3 << 20})
	ctx := testContext(t)
	for _, n := range []int{0, 1, together, together + 1, 3 << 20} {
		done := make(chan error, 1)
		go func() { done <- a.SendBytes(ctx, bytes.Repeat([]byte("x"), n)) }()
		got, err := b.RecvBytes(ctx)
		if err != nil || len(got) != n || <-done != nil {
			t.Fatalf("%d bytes: %d, %v", n, len(got), err)
		}
	}
	go a.SendBytes(ctx, make([]byte, 3<<20+1))
	if _, err := b.RecvBytes(ctx); !errors.Is(err, ErrTooLong) {
		t.Errorf("beyond the limit: %v", err)
	}
}

// TestFrame_MayBeLong writes and reads lengths that do not fit 4 bytes.
func TestFrame_MayBeLong(t *testing.T) {
	for n, want := range map[int]string{
		0: "00000000", 1<<31 - 1: "7fffffff", 1 << 31: "ffffffff" + "0000000080000000",
		1 << 40: "ffffffff" + "0000010000000000",
	} {
		head := frameHead(n)
		if got := hex.EncodeToString(head); got != want {
			t.Errorf("%d bytes begin with %s, not %s", n, got, want)
		}
		if _, err := nextFrame(bytes.NewReader(head), int64(n)-1); n > 0 &&
			(!errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), fmt.Sprint(n))) {
			t.Errorf("%d bytes where one less is allowed: %v", n, err)
		}
	}
}

// TestListener_TakesPythonsAddresses listens at addresses of Python's sockets, which are paths or
// abstract names.
func TestListen_TakesPythonsAddresses(t *testing.T) {
	for _, c := range []struct {
		python any
		want   string
	}{
		{"/tmp/x", "/tmp/x"}, {[]byte("/tmp/x"), "/tmp/x"}, {"\x00name", "@name"},
		{[]byte("\x00name"), "@name"}, {"@path", "./@path"},
	} {
		if got, err := fromPython(c.python); got != c.want || err != nil {
			t.Errorf("%q is %q, not %q; %v", c.python, got, c.want, err)
		}
	}
	if got, err := fromPython(int64(1)); !errors.Is(err, ErrProtocol) {
		t.Errorf("a number is %q, %v", got, err)
	}
	for _, network := range []string{"udp", ""} {
		_, err := Listen(network, "x", Options{})
		_, failed := Dial(testContext(t), network, "x", Options{})
		if err == nil || failed == nil {
			t.Errorf("network %q: %v, %v", network, err, failed)
		}
	}
}

// FuzzFrame wants a message or an error, and no more memory than the bytes that came.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{"", "\x00\x00\x00\x01x", "\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x02xy",
		"\x7f\xff\xff\xffx", "\x80\x00\x00\x00"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := nextFrame(bytes.NewReader(b), 1<<30)
		if err == nil && len(got) > len(b) {
			t.Fatal("more came out than went in")
		}
		var w bytes.Buffer
		if err == nil {
			if err := writeFrame(&w, got); err != nil {
				t.Fatal(err)
			}
			if again, err := nextFrame(&w, 1<<30); err != nil || !bytes.Equal(again, got) {
				t.Fatal(fmt.Sprint(again, err))
			}
		}
		_ = authClient(struct {
			io.Reader
			io.Writer
		}{bytes.NewReader(b), io.Discard}, []byte("k"))
	})
}

// FuzzHandshake plays either side of the handshake against bytes of somebody without the key.
func FuzzHandshake(f *testing.F) {
	for _, s := range []string{"", "\x00\x00\x00\x01x", "\x00\x00\x00\x0f#CHALLENGE#rand", "\x00\x00\x00\x09#WELCOME#",
		"\x00\x00\x00\x13#CHALLENGE#{md5}abc", "\x00\x00\x00\x14#CHALLENGE#{sha256}x"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		said := func() io.ReadWriter {
			return struct {
				io.Reader
				io.Writer
			}{bytes.NewReader(b), io.Discard}
		}
		if authClient(said(), []byte("k")) == nil || authServer(said(), []byte("k")) == nil {
			t.Fatalf("%q proves the key", b)
		}
	})
}

// FuzzCUDAHandle wants the handle's 64 bytes or an error.
func FuzzCUDAHandle(f *testing.F) {
	for _, n := range []int{0, 1, 2, 64, 65, 66, 67} {
		f.Add(append([]byte("\x01c"), make([]byte, n)...))
		f.Add(make([]byte, n))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := CUDAHandle(b)
		switch {
		case err == nil && !bytes.HasSuffix(b, h[:]):
			t.Fatalf("%x is not the end of %x", h, b)
		case err != nil && !errors.Is(err, ErrProtocol) && !errors.Is(err, ErrUnsupported):
			t.Fatal(err)
		}
	})
}
