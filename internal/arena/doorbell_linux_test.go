package arena_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

// take binds names in the abstract namespace, as any user of the machine may.
func take(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		b, err := sys.ListenBell(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
	}
}

// attachDomain joins d's domain once more.
func attachDomain(t *testing.T, d *arena.Domain) *arena.Domain {
	t.Helper()
	again, err := attachAgain(d)
	testutil.NoError(t, err)
	t.Cleanup(func() { again.Close() })
	return again
}

// heard returns the abstract names that contain part, as every user of the machine sees them.
func heard(t *testing.T, part string) (names []string) {
	t.Helper()
	all, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(all)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "@"); ok && strings.Contains(name, part) {
			names = append(names, name)
		}
	}
	return names
}

// A stranger sees the names of a domain, and takes those that were the next ones when the name of a
// doorbell was made of token, seat and epoch. 22 starts failed in a row.
func TestDoorbell_TakenNamesStopNobody(t *testing.T) {
	d := newDomain(t, 1<<20)
	token := fmt.Sprintf("%x", d.Token())
	for seat := range 30 {
		for epoch := range 3 {
			name := fmt.Sprintf("shoal/%s/%d.%d", token, seat, epoch)
			if !slices.Contains(heard(t, name), name) {
				take(t, name)
			}
		}
	}
	for range 22 {
		attachDomain(t, d)
	}
}

func TestDoorbell_NamesSayNothingOfTheNext(t *testing.T) {
	d := newDomain(t, 1<<20)
	seen := map[string]bool{d.BellName(): true}
	for range 30 {
		again := attachDomain(t, d)
		name := again.BellName()
		if seen[name] || !slices.Contains(heard(t, name), name) {
			t.Errorf("the doorbell %s was there before, or is not the one that is bound", name)
		}
		if seen[name] = true; strings.Contains(name, fmt.Sprintf("%x", d.Token())) {
			t.Errorf("%s contains the domain's token", name)
		}
		testutil.NoError(t, again.Close())
	}
}

func TestDoorbell_TriesAnotherNameWhereOneIsTaken(t *testing.T) {
	for _, taken := range []int{1, 7, 8} {
		next := uint64(os.Getpid())<<32 | uint64(taken)<<8
		for i := range taken {
			take(t, fmt.Sprintf("shoal/bell/%016x", next+uint64(i)))
		}
		b, name, err := arena.HangBell(func() (uint64, error) { next++; return next - 1, nil })
		if taken == 8 {
			if !errors.Is(err, syscall.EADDRINUSE) {
				t.Errorf("%d names were taken, and the error is %v", taken, err)
			}
			continue
		}
		testutil.NoError(t, err)
		if name != next-1 {
			t.Errorf("%d names were taken, and the name is %#x of %#x", taken, name, next)
		}
		testutil.NoError(t, b.Close())
	}
}

func init() {
	actors["squatter"] = func(_ *arena.Domain, args []string) error {
		const nobody = 65534
		if err := syscall.Setuid(nobody); err == syscall.EINVAL {
			say("root is the only user")
			return nil
		} else if err != nil {
			return err
		}
		l, err := sys.Listen(args[0])
		if err != nil {
			return err
		}
		say("ready")
		untilKilled()
		return l.Close()
	}
}

// Where the process that made a domain has ended, the name of its keeper is free for every user.
func TestKeeper_OfAnotherUserIsNotTrusted(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	root, err := arena.New(arena.Options{Budget: 1 << 20, Reserve: 1 << 24})
	testutil.NoError(t, err)
	d, err := attachAgain(root)
	testutil.NoError(t, err)
	defer d.Close()
	testutil.NoError(t, root.Close())
	squatter := start(t, nil, "squatter", fmt.Sprintf("@shoal/%x/keeper", d.Token()))
	switch said := squatter.hear(); said {
	case "ready":
	case "root is the only user":
		t.Skip("this user namespace has no other user")
	default:
		t.Fatal(said)
	}
	if _, err := d.KeepFile(os.Stdin); !errors.Is(err, arena.ErrKeeper) || !errors.Is(err, arena.ErrUser) {
		t.Errorf("the error of a file that another user's process was to keep is %v", err)
	}
}
