package remote_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shoal-mp/shoal"
	"github.com/shoal-mp/shoal/internal/link/secure/securetest"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/manager"
	"github.com/shoal-mp/shoal/manager/remote"
	"github.com/shoal-mp/shoal/shm"
	"github.com/shoal-mp/shoal/shoaltest"
	"github.com/shoal-mp/shoal/tensor"
	"github.com/shoal-mp/shoal/test/testutil"
)

// budget is so small that a test can use it up.
const budget = 512 << 20

func TestMain(m *testing.M) {
	if err := shoal.SetMemory(shm.Options{Budget: budget}); err != nil {
		panic(err)
	}
	shoaltest.TestMain(m)
}

var key = []byte("sixteen bytes, or more")

// served returns a manager whose server has a process of its own, and a listener to it.
func served(t testing.TB, opts remote.Options) (*manager.Manager, *remote.Listener) {
	t.Helper()
	m, err := manager.Start(context.Background())
	testutil.NoError(t, err)
	l, err := remote.Listen(m, "127.0.0.1:0", opts)
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, errors.Join(l.Close(), m.Close())) })
	return m, l
}

func dialed(t testing.TB, l *remote.Listener, opts remote.Options) *manager.Manager {
	t.Helper()
	m, err := remote.Dial(testutil.Context(t), l.Addr().String(), opts)
	testutil.NoError(t, err)
	t.Cleanup(func() { testutil.NoError(t, m.Close()) })
	return m
}

func TestDial_ReturnsAManager(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	for name, opts := range map[string]remote.Options{"key": {Key: key},
		"key and fingerprint": {Key: key, Fingerprint: l.Fingerprint()}} {
		t.Run(name, func(t *testing.T) {
			m := dialed(t, l, opts)
			d, err := manager.NewDict[string, *manager.List[int]](ctx, m)
			testutil.NoError(t, err)
			defer d.Close()
			list, err := manager.NewList(ctx, m, 1, 2)
			testutil.NoError(t, err)
			testutil.NoError(t, d.Set(ctx, "list", list))
			testutil.NoError(t, list.Close())
			again, err := d.Get(ctx, "list")
			testutil.NoError(t, err)
			defer again.Close()
			_, err = again.Add(ctx, 0, 41)
			testutil.NoError(t, err)
			all, err := again.All(ctx)
			if err != nil || !slices.Equal(all, []int{42, 2}) {
				t.Errorf("%v, %v", all, err)
			}
			a, err := manager.NewArray(ctx, m, 1.5, 2)
			testutil.NoError(t, err)
			defer a.Close()
			v, err := a.Add(ctx, 1, 1)
			if v != 3 || err != nil {
				t.Errorf("%v, %v", v, err)
			}
			_, err = a.Get(ctx, 2)
			testutil.ErrorIs(t, err, manager.ErrIndex)
			testutil.NoError(t, m.Txn(ctx, func(tx context.Context) error { return a.Set(tx, 0, 7) }))
			vs, err := a.All(ctx)
			if err != nil || !slices.Equal(vs, []float64{7, 3}) {
				t.Errorf("%v, %v", vs, err)
			}
		})
	}
}

// Two machines and the server's own share one object; no addition is lost.
func TestListen_ClientsHereAndThereShareAnObject(t *testing.T) {
	ctx := testutil.Context(t)
	here, l := served(t, remote.Options{Key: key})
	there := [2]*manager.Manager{dialed(t, l, remote.Options{Key: key}), dialed(t, l, remote.Options{Key: key})}
	v, err := manager.NewValue(ctx, here, 0)
	testutil.NoError(t, err)
	defer v.Close()
	testutil.NoError(t, manager.Publish(ctx, here, "total", v))
	var wg sync.WaitGroup
	const times = 100
	add := func(v *manager.Value[int]) {
		for range times {
			if _, err := v.Add(ctx, 1); err != nil {
				t.Error(err)
				return
			}
		}
	}
	wg.Go(func() { add(v) })
	for _, m := range there {
		mine, err := manager.Find[*manager.Value[int]](ctx, m, "total")
		testutil.NoError(t, err)
		defer mine.Close()
		wg.Go(func() { add(mine) })
	}
	wg.Wait()
	n, err := v.Get(ctx)
	if n != 3*times || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	_, err = manager.Find[*manager.Value[float64]](ctx, there[0], "total")
	testutil.ErrorIs(t, err, manager.ErrType)
	testutil.NoError(t, there[0].Withdraw(ctx, "total"))
	_, err = manager.Find[*manager.Value[int]](ctx, there[1], "total")
	testutil.ErrorIs(t, err, manager.ErrNoKey)
}

func TestDial_CancelsACallThatWaitsThere(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	m := dialed(t, l, remote.Options{Key: key})
	q, err := manager.NewQueue[int](ctx, m, ipc.Unbounded)
	testutil.NoError(t, err)
	defer q.Close()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	_, err = q.Get(short)
	testutil.ErrorIs(t, err, manager.ErrEmpty, context.DeadlineExceeded)
	testutil.NoError(t, q.Put(ctx, 5))
	v, err := q.Get(ctx)
	if v != 5 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}

func TestDial_FileStaysInItsMachine(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	m := dialed(t, l, remote.Options{Key: key})
	d, err := manager.NewDict[string, *os.File](ctx, m)
	testutil.NoError(t, err)
	defer d.Close()
	f, err := os.Open(os.DevNull)
	testutil.NoError(t, err)
	defer f.Close()
	err = d.Set(ctx, "f", f)
	testutil.ErrorIs(t, err, manager.ErrShared)
	if err == nil || !strings.Contains(err.Error(), "does not share memory or descriptors") {
		t.Errorf("%v", err)
	}
	n, err := d.Len(ctx) // the connection goes on
	if n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// Values, queues and dicts keep copies of tensors, of which the caller has its own as well.
func TestDial_TensorsGoByValue(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	m := dialed(t, l, remote.Options{Key: key})
	d, err := manager.NewDict[string, *tensor.Tensor](ctx, m)
	testutil.NoError(t, err)
	defer d.Close()
	q, err := manager.NewQueue[*tensor.Tensor](ctx, m, ipc.Unbounded)
	testutil.NoError(t, err)
	defer q.Close()
	large, err := tensor.NewShared(tensor.Uint8, 65<<20+1) // a call's frame ends at 64 MiB
	testutil.NoError(t, err)
	defer large.Close()
	tensor.Data[uint8](large)[65<<20] = 7
	whole := tensor.RandN(tensor.Float32, tensor.NewGenerator(1), 40, 30)
	defer whole.Close()
	for name, x := range map[string]*tensor.Tensor{"large": large, "whole": whole, "transposed": whole.T(),
		"a narrow part": whole.Narrow(0, 20, 1)} {
		testutil.NoError(t, d.Set(ctx, name, x))
		testutil.NoError(t, q.Put(ctx, x))
		fromDict, err := d.Get(ctx, name)
		testutil.NoError(t, err)
		fromQueue, err := q.Get(ctx)
		testutil.NoError(t, err)
		if !tensor.Equal(fromDict, x) || !tensor.Equal(fromQueue, x) {
			t.Errorf("%s: another tensor came back", name)
		}
		testutil.NoError(t, errors.Join(fromDict.Close(), fromQueue.Close()))
	}
	got, err := d.Get(ctx, "whole")
	testutil.NoError(t, err)
	tensor.Data[float32](got)[0]++
	again, err := d.Get(ctx, "whole")
	testutil.NoError(t, err)
	if tensor.Equal(got, again) {
		t.Error("what is written to a copy is seen in the dict")
	}
	testutil.NoError(t, errors.Join(got.Close(), again.Close()))
}

// A scale is an object of the server whose methods take and return tensors.
type scale struct{ by float32 }

func newScale(by float32) (*scale, error) { return &scale{by}, nil }

// Apply returns x times the scale.
func (s *scale) Apply(x *tensor.Tensor) (*tensor.Tensor, error) {
	defer x.Close()
	y, err := tensor.NewShared(tensor.Float32, x.Shape()...)
	if err != nil {
		return nil, err
	}
	return y.CopyFrom(x).MulScalarInPlace(float64(s.by)), nil // kernels, which the race detector does not slow
}

// Sums returns the sums of tensors that are views of one storage, or not.
func (s *scale) Sums(xs []*tensor.Tensor) []float32 {
	sums := make([]float32, len(xs))
	for i, x := range xs {
		for _, v := range tensor.Data[float32](x) {
			sums[i] += v
		}
		x.Close()
	}
	return sums
}

var scales = manager.Register("scale", newScale, (*scale).Apply, (*scale).Sums)

// Calls of registered types take and return tensors by value.
func TestCall_TensorsGoByValue(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	m := dialed(t, l, remote.Options{Key: key})
	s, err := scales.New(ctx, m, float32(3))
	testutil.NoError(t, err)
	x := tensor.Arange(tensor.Float32, 0, 20<<20, 1) // 80 MiB, more than a frame
	y, err := manager.Call[*tensor.Tensor](ctx, s, "Apply", x)
	testutil.NoError(t, err)
	if !tensor.Equal(y, x.MulScalarInPlace(3)) { // x did not change before
		t.Fatalf("got %v, want %v", y, x)
	}
	testutil.NoError(t, errors.Join(x.Close(), y.Close()))
	z := tensor.Arange(tensor.Float32, 0, 10, 1)
	before := shoal.MemoryStats().Blocks
	const rounds = 50
	for range rounds {
		xs := []*tensor.Tensor{z, z.Narrow(0, 1, 9), z.Narrow(0, 0, 2)}
		sums, err := manager.Call[[]float32](ctx, s, "Sums", xs)
		if err != nil || !slices.Equal(sums, []float32{45, 45, 1}) {
			t.Fatalf("%v, %v", sums, err)
		}
		y, err := manager.Call[*tensor.Tensor](ctx, s, "Apply", z)
		testutil.NoError(t, err)
		testutil.NoError(t, errors.Join(y.Close(), xs[1].Close(), xs[2].Close()))
	}
	testutil.NoError(t, errors.Join(z.Close(), s.Close()))
	blocksCome(t, before+rounds-1) // one connection more than before has some, a round leaves none
}

// A server without room for a tensor says so, and what it kept before stays. So does the client's
// side.
func TestDial_NoRoomForATensor(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	m := dialed(t, l, remote.Options{Key: key})
	d, err := manager.NewDict[string, *tensor.Tensor](ctx, m)
	testutil.NoError(t, err)
	defer d.Close()
	kept := tensor.Full(tensor.Int32, 5, 7)
	defer kept.Close()
	testutil.NoError(t, d.Set(ctx, "x", kept))
	before := shoal.MemoryStats().Blocks
	big, err := tensor.NewShared(tensor.Uint8, budget*5/8)
	testutil.NoError(t, err)
	for range 2 { // and nothing of the first is in the way of the second
		err = d.Set(ctx, "x", big)
		testutil.ErrorIs(t, err, shm.ErrNoSpace)
		testutil.ErrorContains(t, err, "127.0.0.1", "raise Budget")
	}
	testutil.NoError(t, big.Close())
	blocksCome(t, before)
	got, err := d.Get(ctx, "x")
	testutil.NoError(t, err)
	if !tensor.Equal(got, kept) {
		t.Errorf("%v was kept, not %v", got, kept)
	}
	testutil.NoError(t, got.Close())

	large, err := tensor.NewShared(tensor.Uint8, budget*3/8)
	testutil.NoError(t, err)
	testutil.NoError(t, d.Set(ctx, "large", large))
	_, err = d.Get(ctx, "large") // a third one has no room
	testutil.ErrorIs(t, err, shm.ErrNoSpace)
	testutil.ErrorContains(t, err, "127.0.0.1", "raise Budget")
	testutil.NoError(t, large.Close())
	got, err = d.Get(ctx, "large") // it is still there
	testutil.NoError(t, err)
	if got.Numel() != budget*3/8 {
		t.Errorf("%v", got)
	}
	testutil.NoError(t, got.Close())
}

// blocksCome waits until the domain has no more than n blocks.
func blocksCome(t *testing.T, n int) {
	t.Helper()
	testutil.EventuallyNoError(t, func() error {
		if shoal.MemoryStats().Blocks > n {
			return fmt.Errorf("%d blocks, of %d before", shoal.MemoryStats().Blocks, n)
		}
		return nil
	})
}

func TestDial_ProxyOfAnotherServerIsRefused(t *testing.T) {
	ctx := testutil.Context(t)
	_, l1 := served(t, remote.Options{Key: key})
	_, l2 := served(t, remote.Options{Key: key})
	m1, m2 := dialed(t, l1, remote.Options{Key: key}), dialed(t, l2, remote.Options{Key: key})
	v, err := manager.NewValue(ctx, m1, 1)
	testutil.NoError(t, err)
	defer v.Close()
	d, err := manager.NewDict[int, *manager.Value[int]](ctx, m2)
	testutil.NoError(t, err)
	defer d.Close()
	testutil.ErrorIs(t, d.Set(ctx, 1, v), manager.ErrForeign)
}

func TestListen_RefusesAnotherKey(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	for _, k := range []string{"another key of this length", "s", ""} {
		_, err := remote.Dial(ctx, l.Addr().String(), remote.Options{Key: []byte(k)})
		testutil.ErrorIs(t, err, remote.ErrKey)
	}
	_, err := remote.Dial(ctx, l.Addr().String(), remote.Options{Key: key, Fingerprint: [32]byte{1}})
	testutil.ErrorIs(t, err, remote.ErrFingerprint)
	_, err = remote.Listen(nil, "127.0.0.1:0", remote.Options{})
	testutil.ErrorIs(t, err, remote.ErrKey)
}

// Somebody in the middle ends one TLS connection and begins another; it does not know the key, and
// what it passes on proves nothing.
func TestDial_FindsOutSomebodyInTheMiddle(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	testutil.NoError(t, err)
	defer tcp.Close()
	cert := remote.SelfSigned(t)
	go func() {
		c, err := tcp.Accept()
		if err != nil {
			return
		}
		front := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{cert}})
		back, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			return
		}
		go io.Copy(back, front)
		io.Copy(front, back)
		front.Close()
		back.Close()
	}()
	_, err = remote.Dial(ctx, tcp.Addr().String(), remote.Options{Key: key})
	testutil.ErrorIs(t, err, remote.ErrKey)
}

// What is no manager is said to be none, and what sends garbage is sent away, while others are
// served.
func TestListen_DropsGarbage(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	for _, garbage := range []string{"", "GET / HTTP/1.0\r\n\r\n", strings.Repeat("\xff", 100_000)} {
		c, err := net.Dial("tcp", l.Addr().String())
		testutil.NoError(t, err)
		c.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(c, garbage)
		c.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, c); errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%.10q was kept", garbage)
		}
		c.Close()
	}
	s, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true})
	testutil.NoError(t, err)
	defer s.Close()
	s.Write([]byte(strings.Repeat("garbage ", 9)))
	if _, err := io.Copy(io.Discard, bufio.NewReader(s)); err != nil && !errors.Is(err, io.EOF) {
		t.Log(err) // a reset is as good
	}
	m := dialed(t, l, remote.Options{Key: key})
	v, err := manager.NewValue(ctx, m, 1)
	testutil.NoError(t, err)
	testutil.NoError(t, v.Close())

	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	testutil.NoError(t, err)
	defer tcp.Close()
	go func() {
		if c, err := tcp.Accept(); err == nil {
			io.WriteString(c, "SSH-2.0-nobody\r\n")
			c.Close()
		}
	}()
	_, err = remote.Dial(ctx, tcp.Addr().String(), remote.Options{Key: key})
	testutil.ErrorIs(t, err, remote.ErrPeer)
}

func TestListener_EndIsNoticed(t *testing.T) {
	ctx := testutil.Context(t)
	m, err := manager.New(ctx)
	testutil.NoError(t, err)
	defer m.Close()
	l, err := remote.Listen(m, "127.0.0.1:0", remote.Options{Key: key})
	testutil.NoError(t, err)
	far, err := remote.Dial(ctx, l.Addr().String(), remote.Options{Key: key})
	testutil.NoError(t, err)
	defer far.Close()
	q, err := manager.NewQueue[int](ctx, far, ipc.Unbounded)
	testutil.NoError(t, err)
	defer q.Close()
	got := make(chan error)
	go func() { _, err := q.Get(ctx); got <- err }()
	testutil.NoError(t, q.Put(ctx, 1))
	testutil.NoError(t, <-got)
	go func() { _, err := q.Get(ctx); got <- err }()
	testutil.NoError(t, l.Close())
	testutil.ErrorIs(t, <-got, manager.ErrServerDied)
	testutil.ErrorIs(t, q.Put(ctx, 1), manager.ErrServerDied)
}

// flood connects more often than there may be strangers, from an address of this machine, and says
// nothing. Connections are accepted in turn, so who connects then comes after all of these.
func flood(t *testing.T, l *remote.Listener, from string) {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	for range 2 * sys.MostStrangers {
		c, err := d.DialContext(testutil.Context(t), "tcp", l.Addr().String())
		testutil.NoError(t, err)
		t.Cleanup(func() { c.Close() })
	}
}

func TestListener_SilentClientsBlockNobody(t *testing.T) {
	ctx := testutil.Context(t)
	_, l := served(t, remote.Options{Key: key})
	before := dialed(t, l, remote.Options{Key: key})
	v, err := manager.NewValue(ctx, before, 1)
	testutil.NoError(t, err)
	defer v.Close()
	flood(t, l, "127.0.0.1")
	var wg sync.WaitGroup
	for range 8 { // more at once than there were connections
		wg.Go(func() {
			if _, err := v.Add(ctx, 1); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for range 20 {
		m, err := remote.Dial(ctx, l.Addr().String(), remote.Options{Key: key})
		testutil.NoError(t, err)
		testutil.NoError(t, m.Close())
	}
	if n, err := v.Get(ctx); n != 9 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// A client that has connected and is slow stays, whatever comes from another address.
func TestListener_OneAddressPushesOutNoOthers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the whole of 127.0.0.0/8")
	}
	_, l := served(t, remote.Options{Key: key})
	slow, err := net.Dial("tcp", l.Addr().String())
	testutil.NoError(t, err)
	defer slow.Close()
	flood(t, l, "127.0.0.2")
	dialed(t, l, remote.Options{Key: key})
	testutil.NoError(t, tls.Client(slow, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(testutil.Context(t)))
}

// Certificates of an authority are checked by the host in the address, and clients' as well. A
// listener that refuses a client's certificate is told from one that speaks something else.
func TestDial_Certificates(t *testing.T) {
	ours, others := securetest.New(t), securetest.New(t)
	config := func(certs ...tls.Certificate) *tls.Config {
		return &tls.Config{Certificates: certs, RootCAs: ours.Pool(), ClientCAs: ours.Pool(),
			ClientAuth: tls.RequireAndVerifyClientCert}
	}
	_, l := served(t, remote.Options{Key: key, TLS: config(ours.Certificate(t, "manager.example"))})
	client := ours.Certificate(t, "client.example")
	dialed(t, l, remote.Options{Key: key, TLS: config(client)})
	misnamed := config(client)
	misnamed.ServerName = "another.example"
	for name, c := range map[string]*tls.Config{"no TLS": nil, "no certificate": config(), "another name": misnamed,
		"of another authority": config(others.Certificate(t, "client.example")),
		"expired":              config(ours.Expired(t, "client.example"))} {
		_, err := remote.Dial(testutil.Context(t), l.Addr().String(), remote.Options{Key: key, TLS: c})
		testutil.ErrorIs(t, err, remote.ErrCertificate)
		if errors.Is(err, remote.ErrPeer) || err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := remote.Dial(testutil.Context(t), l.Addr().String(),
		remote.Options{Key: []byte("another"), TLS: config(client)})
	testutil.ErrorIs(t, err, remote.ErrKey)
}
