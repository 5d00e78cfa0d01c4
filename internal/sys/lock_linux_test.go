package sys_test

import (
	"os"
	"testing"

	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

func locked(t *testing.T, f *os.File, i int64, want bool) {
	t.Helper()
	if got := testutil.Value(sys.ByteLocked(f, i))(t); got != want {
		t.Errorf("byte %d locked: %v, want %v", i, got, want)
	}
}

func TestLockByteExcludesOtherDescriptions(t *testing.T) {
	a := memfile(t, mib)
	b := testutil.Value(sys.Reopen(a))(t)
	defer b.Close()
	if !testutil.Value(sys.LockByte(a, 5))(t) {
		t.Fatal("a free byte was not locked")
	}
	if testutil.Value(sys.LockByte(b, 5))(t) {
		t.Error("a held byte was locked again")
	}
	locked(t, b, 5, true)
	locked(t, b, 4, false) // neighbours are free
	locked(t, b, 6, false)
	locked(t, a, 5, false) // one's own does not count
	testutil.NoError(t, sys.UnlockByte(a, 5))
	locked(t, b, 5, false)
	if !testutil.Value(sys.LockByte(b, 5))(t) {
		t.Error("the byte was not free after unlocking")
	}
	b.Close()
	locked(t, a, 5, false) // closing lets go as well
}

func init() {
	roles["hold byte 200"] = func() error {
		f, err := sys.Reopen(os.NewFile(3, "shared"))
		if err != nil {
			return err
		}
		if ok, err := sys.LockByte(f, 200); err != nil || !ok {
			return os.ErrExist
		}
		readyAndWait()
		return f.Close()
	}
}

func TestLockOfAKilledProcessIsFreeBeforeItIsReaped(t *testing.T) {
	f := memfile(t, mib)
	cmd := command("hold byte 200")
	cmd.ExtraFiles = []*os.File{f}
	c := start(t, cmd)
	p := testutil.Value(sys.OpenPidfd(c.Process.Pid))(t)
	defer p.Close()
	locked(t, f, 200, true)
	testutil.NoError(t, c.Process.Kill())
	within(t, "the child's end", func() { testutil.NoError(t, p.Wait(t.Context())) })
	locked(t, f, 200, false) // it is a zombie still: nobody has waited for it
}
