package arena_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shoal-mp/shoal/internal/arena"
	"github.com/shoal-mp/shoal/internal/arena/layout"
	"github.com/shoal-mp/shoal/internal/sys"
	"github.com/shoal-mp/shoal/test/testutil"
)

func TestAttach_ToAnotherVersionIsRefused(t *testing.T) {
	const ours = layout.ProtocolVersion
	for name, c := range map[string]struct {
		magic, hash, version uint64 // added to the magic and the hash of this build
		said                 string
	}{
		"newer":        {0, 1, ours + 1, fmt.Sprintf("has version %d,", ours+1)},
		"older":        {0, 1, ours - 1, fmt.Sprintf("has version %d,", ours-1)},
		"oldest":       {0, 1, 0, "has version below 9,"},
		"other layout": {0, 1, ours, fmt.Sprintf("layout %#x", layout.Hash()+1)},
		"magic":        {1, 0, ours, "magic"},
	} {
		t.Run(name, func(t *testing.T) {
			everyWorld(t, 1<<20, func(t *testing.T, f *family) {
				f.first.SetLayout(f.first.Magic()+c.magic, layout.Hash()+c.hash, c.version)
				_, err := f.attach()
				wantVersions(t, err, c.said, c.magic == 0)
			})
		})
	}
}

// wantVersions fails unless err is ErrVersion and says theirs, and this build's version where that
// is known.
func wantVersions(t *testing.T, err error, theirs string, both bool) {
	t.Helper()
	ours := fmt.Sprintf("this program has version %d,", layout.ProtocolVersion)
	if !errors.Is(err, arena.ErrVersion) || !strings.Contains(err.Error(), theirs) ||
		both && !strings.Contains(err.Error(), ours) {
		t.Errorf("%v: want ErrVersion, %q and %q", err, theirs, ours)
	}
}

// The first words of a control segment are where they are in all versions, whatever size it has.
func TestAttach_ToAnotherVersionOfAnotherSizeIsRefused(t *testing.T) {
	d := newDomain(t, 1<<20)
	for _, version := range []uint64{0, layout.ProtocolVersion - 1, layout.ProtocolVersion + 1} {
		control, err := os.Create(filepath.Join(t.TempDir(), "control"))
		testutil.NoError(t, err)
		defer control.Close()
		testutil.NoError(t, control.Truncate(arena.ControlSize+arena.PageSize))
		var head [56]byte
		binary.NativeEndian.PutUint64(head[0:], d.Magic())
		binary.NativeEndian.PutUint64(head[8:], 1234)
		binary.NativeEndian.PutUint64(head[48:], version)
		_, err = control.WriteAt(head[:], 0)
		testutil.NoError(t, err)
		data, err := sys.Reopen(d.Files()[1])
		testutil.NoError(t, err)
		defer data.Close()
		said := fmt.Sprintf("has version %d,", version)
		if version == 0 {
			said = "has version below 9,"
		}
		_, err = arena.Attach(control, data)
		wantVersions(t, err, said, true)
	}
}

func TestAttach_ToFilesThatAreNoDomainIsRefused(t *testing.T) {
	d := newDomain(t, 1<<20)
	for name, size := range map[string]int64{"empty": 0, "short": arena.ControlSize - 1, "zeros": arena.ControlSize} {
		t.Run(name, func(t *testing.T) {
			control, err := os.Create(filepath.Join(t.TempDir(), "control"))
			testutil.NoError(t, err)
			defer control.Close()
			testutil.NoError(t, control.Truncate(size))
			data, err := sys.Reopen(d.Files()[1])
			testutil.NoError(t, err)
			defer data.Close()
			if _, err := arena.Attach(control, data); !errors.Is(err, arena.ErrVersion) {
				t.Fatalf("attach: %v, want ErrVersion", err)
			}
		})
	}
}

func TestAttach_WithTheDataOfAnotherDomainIsRefused(t *testing.T) {
	a, b := newDomain(t, 1<<20), newDomain(t, 4<<20)
	control, mine, err := a.Dup(sys.Reopen)
	testutil.NoError(t, err)
	defer control.Close()
	defer mine.Close()
	other, err := sys.Reopen(b.Files()[1])
	testutil.NoError(t, err)
	defer other.Close()
	if _, err := arena.Attach(control, other); !errors.Is(err, arena.ErrCorrupt) {
		t.Fatalf("attach: %v, want ErrCorrupt", err)
	}
}
