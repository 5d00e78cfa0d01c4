package ipc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/codec"
	"github.com/shoal-mp/shoal/ipc"
	"github.com/shoal-mp/shoal/test/testutil"
)

// openPipe returns a pipe whose reading side gives up when the test hangs.
func openPipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	testutil.NoError(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	testutil.NoError(t, r.SetReadDeadline(time.Now().Add(time.Minute)))
	return r, w
}

// toTheEnd reads until nobody has the other side of the pipe any more.
func toTheEnd(t testing.TB, r *os.File) string {
	t.Helper()
	b, err := io.ReadAll(r)
	testutil.NoError(t, err)
	return string(b)
}

// A letter is a value with files in it.
type letter struct {
	Text  string
	Files []*os.File
}

type mailing struct {
	Box  *ipc.Sender[letter]
	Dead bool
}

// mail puts a letter with a pipe in it, and with Dead is killed at once.
var mail = newRole("mail", func(ctx context.Context, m mailing) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	fmt.Fprint(w, "written before")
	if err := m.Box.Put(ctx, letter{"a pipe", []*os.File{r, w}}); err != nil {
		return err
	}
	if m.Dead {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	return errors.Join(r.Close(), w.Close(), m.Box.Close())
})

// Python's reduction.DupFd fails here with EOFError or ConnectionRefusedError: the process that has
// the descriptor is gone.
func TestRegression_S2_7_AFileArrivesWhoseSenderIsGone(t *testing.T) {
	for _, dead := range []bool{false, true} {
		t.Run(fmt.Sprintf("killed %v", dead), func(t *testing.T) {
			d, ctx := shared(t), testutil.Context(t)
			q := newQueue[letter](t, 2)
			cmd := mail.start(t, d, mailing{q.Sender(), dead})
			if err := cmd.Wait(); (err != nil) != dead {
				t.Fatal(err)
			}
			l, err := q.Get(ctx)
			testutil.NoError(t, err)
			if len(l.Files) != 2 || l.Files[0].Name() != "|0" || l.Files[1].Name() != "|1" {
				t.Fatalf("arrived: %v", l)
			}
			fmt.Fprint(l.Files[1], ", and after")
			testutil.NoError(t, l.Files[1].Close())
			testutil.NoError(t, l.Files[0].SetReadDeadline(time.Now().Add(time.Minute)))
			if got := toTheEnd(t, l.Files[0]); got != "written before, and after" {
				t.Errorf("read %q", got)
			}
			testutil.NoError(t, l.Files[0].Close())
		})
	}
}

var readAll = newRole("read all", func(ctx context.Context, c *ipc.PipeEnd[letter, letter]) error {
	defer c.Close()
	for l, err := range c.All(ctx) {
		if err != nil {
			return err
		}
		if l.Text == "hold" {
			c.Send(ctx, letter{Text: "held"})
			<-ctx.Done() // until somebody kills us
		}
		for _, f := range l.Files {
			b, err := io.ReadAll(f)
			if err := errors.Join(err, f.Close(), c.Send(ctx, letter{Text: string(b)})); err != nil {
				return err
			}
		}
	}
	return nil
})

func TestFile_IsTheReceiversAlone(t *testing.T) {
	d, ctx := shared(t), testutil.Context(t)
	a, b, err := ipc.Pipe[letter, letter]()
	testutil.NoError(t, err)
	defer a.Close()
	cmd := readAll.start(t, d, b)
	testutil.NoError(t, b.Close())
	for range 20 {
		r, w := openPipe(t)
		testutil.NoError(t, a.Send(ctx, letter{"read", []*os.File{r}}))
		testutil.NoError(t, r.Close())
		fmt.Fprint(w, "text")
		testutil.NoError(t, w.Close())
		l, err := a.Recv(ctx)
		testutil.NoError(t, err)
		if l.Text != "text" {
			t.Fatalf("read %q", l.Text)
		}
		// What the other process has closed nobody has any more.
		if _, err := w.Write([]byte("x")); err == nil {
			t.Error("a pipe that nobody reads takes what is written")
		}
	}
	r, w := openPipe(t)
	testutil.NoError(t, a.Send(ctx, letter{"hold", []*os.File{w}}))
	testutil.NoError(t, w.Close())
	_, err = a.Recv(ctx)
	testutil.NoError(t, err)
	testutil.NoError(t, cmd.Process.Kill())
	cmd.Wait()
	if got := toTheEnd(t, r); got != "" { // ends because the receiver has died
		t.Errorf("read %q", got)
	}
}

func TestFile_ThatNobodyReceivesIsClosed(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	q := newQueue[letter](t, 4)
	r, w := openPipe(t)
	testutil.NoError(t, q.Put(ctx, letter{"one", []*os.File{w, w}}))
	testutil.NoError(t, q.Put(ctx, letter{"two", []*os.File{w}}))
	testutil.NoError(t, w.Close())
	testutil.NoError(t, q.Close())
	if got := toTheEnd(t, r); got != "" {
		t.Errorf("read %q", got)
	}
	p, w := openPipe(t)
	full := newQueue[letter](t, 1)
	testutil.NoError(t, full.TryPut(letter{}))
	testutil.ErrorIs(t, full.TryPut(letter{"refused", []*os.File{w}}), ipc.ErrFull)
	testutil.NoError(t, w.Close())
	if got := toTheEnd(t, p); got != "" {
		t.Errorf("read %q", got)
	}
}

func TestFile_MayHaveAName(t *testing.T) {
	shared(t)
	r, w := openPipe(t)
	testutil.NoError(t, ipc.Bind(t.Context(), "log", w))
	testutil.NoError(t, w.Close())
	for range 3 {
		f, err := ipc.Lookup[*os.File]("log")
		testutil.NoError(t, err)
		fmt.Fprint(f, "line ")
		testutil.NoError(t, f.Close())
	}
	testutil.NoError(t, ipc.Unlink("log"))
	if got := toTheEnd(t, r); got != "line line line " {
		t.Errorf("read %q", got)
	}
}

func TestFile_ThatCannotBeSentSaysWhy(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	q := newQueue[any](t, 4)
	_, w := openPipe(t)
	testutil.NoError(t, w.Close())
	err := q.Put(ctx, w)
	testutil.ErrorIs(t, err, os.ErrClosed)
	if err == nil || !strings.Contains(err.Error(), "send file |1") {
		t.Errorf("%v", err)
	}
	testutil.NoError(t, q.Put(ctx, (*os.File)(nil)))
	if v, err := q.Get(ctx); err != nil || v.(*os.File) != nil {
		t.Errorf("nil arrived as %v, %v", v, err)
	}
}

// What says that it is a file, and is another block, is an error, and the block is given back.
func TestFile_IsNoOtherBlock(t *testing.T) {
	d := shared(t)
	plan, err := codec.PlanOf[*os.File]()
	testutil.NoError(t, err)
	b := newBlob(t, d, "no file")
	var e codec.Encoder
	e.Reset(nil)
	e.ArrayLen(3)
	e.Uint(0) // the tag
	e.String("name")
	e.Block(b.h)
	var dec codec.Decoder
	dec.Reset(e.Message(), importer{d, e.Message().Blocks})
	_, err = plan.Decode(&dec)
	dec.Done(false)
	e.Done(true)
	testutil.ErrorIs(t, err, arena.ErrKeeper)
	testutil.NoError(t, b.Close())
	for _, body := range [][]byte{{0x93}, {0x94, 0, 0xa0, 0xc0, 0xc0}, {0x93, 0, 0xa0, 0xc0},
		{0x93, 0, 0xa0, 0xd4, 'S', 0}, {0x93, 0, 0x05, 0xd4, 'S', 0}, {0x93, 1, 0xa0, 0xd4, 'S', 0}} {
		dec.Reset(codec.Message{Body: body}, nil)
		_, err := plan.Decode(&dec)
		dec.Done(false)
		testutil.ErrorIs(t, err, codec.ErrFormat)
	}
}

func TestFile_NeedsAKeeper(t *testing.T) {
	local(t)
	_, w := openPipe(t)
	testutil.ErrorIs(t, newQueue[*os.File](t, 1).Put(testutil.Context(t), w), arena.ErrKeeper, errors.ErrUnsupported)
}

// The domain's maker does not run out of descriptors because nobody receives them.
func TestFile_TooManyUnderWayAreRefused(t *testing.T) {
	shared(t)
	ctx := testutil.Context(t)
	q, err := ipc.NewQueue[*os.File](ipc.Unbounded)
	testutil.NoError(t, err)
	defer q.Close()
	_, w := openPipe(t)
	n := 0
	for err = q.Put(ctx, w); err == nil && n < 1<<14; err = q.Put(ctx, w) {
		n++
	}
	testutil.ErrorIs(t, err, arena.ErrTooManyFiles)
	for range 2 { // there is room for as many as are received
		f, err := q.Get(ctx)
		testutil.NoError(t, err)
		testutil.NoError(t, f.Close())
		testutil.NoError(t, q.Put(ctx, w))
	}
	t.Logf("%d were under way", n)
}
